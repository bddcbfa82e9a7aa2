package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/tattler-dev/tattler/internal/capture/quiet"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
)

// What all pumps together keep in memory beside their batches.
const (
	forwardBytes = 24 << 20 // of the versions that lagging ones read next; see journal.Reader.ReadForwards
	shelfBytes   = 16 << 20 // of the changes that they share
)

// stores are what the pumps read, one each.
type stores struct {
	outboxes []*outbox
	readers  []*journal.Reader // theirs, and the last one for what they share
}

// openStores opens what n pumps read from a journal.
func openStores(ctx context.Context, j *journal.Journal, rules *quiet.Set, text func(io.Writer, change.Change) error, log *slog.Logger, n int) (*stores, error) {
	s := &stores{}
	for i := range n + 1 {
		r, err := journal.OpenReader(ctx, j.Path())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open a reader for a sink: %w", err), s.close())
		}
		s.readers = append(s.readers, r)
		if i < n {
			r.ReadForwards(forwardBytes / n)
		}
	}
	teller := history.New(s.readers[n], rules)
	all := &shelves{limit: shelfBytes, items: map[int64]*shared{}}
	for _, r := range s.readers[:n] {
		s.outboxes = append(s.outboxes, &outbox{j, r, all.add(), teller, text, log})
	}
	return s, nil
}

func (s *stores) close() error {
	var errs []error
	for _, r := range s.readers {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
