package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// Memory limits of all pumps together, besides their batches.
const (
	forwardBytes = 24 << 20 // of the versions that lagging pumps read next; see journal.Reader.ReadForwards
	shelfBytes   = 8 << 20  // of the changes that they share
	versionBytes = 8 << 20  // of the objects after these changes; see history.Builder.KeepVersions
)

// stores are the stores that the pumps read, one each.
type stores struct {
	outboxes []*outbox
	readers  []*journal.Reader // theirs, and the last one for shared versions
}

// openStores opens the stores for pumps with these options. Pumps that need the objects of updates share what
// they read with each other, and so do the others.
func openStores(ctx context.Context, j *journal.Journal, rules *quiet.Set, o *Options) (*stores, error) {
	s, sinks, n := &stores{}, o.Sinks, len(o.Sinks)
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
	teller.KeepVersions(versionBytes)
	groups := map[bool]*shelves{true: newShelves(shelfBytes / 2), false: newShelves(shelfBytes / 2)} // by Options.Whole
	for i := range sinks {
		whole := sinks[i].Whole()
		s.outboxes = append(s.outboxes, &outbox{
			journal: j, reader: s.readers[i], shelf: groups[whole].add(), tell: teller, lean: !whole, text: o.Text, story: o.Story, log: o.Log,
		})
	}
	for whole := range groups { // a single pump shares nothing
		if len(groups[!whole].all) < 2 {
			groups[whole].limit = shelfBytes
		}
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
