package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// Memory limits of all pumps together, besides their batches.
const (
	forwardBytes = 24 << 20 // of the versions that lagging pumps read next; see journal.Reader.ReadForwards
	shelfBytes   = 8 << 20  // of the changes that were just recorded, or that they share
	versionBytes = 8 << 20  // of the objects after these changes; see history.Builder.KeepVersions
)

// stores are the stores that the pumps read, one each.
type stores struct {
	groups   []*group
	outboxes []*outbox
	readers  []*journal.Reader // theirs, and the last one for shared versions
}

// group is the pumps that need the same parts of changes.
type group struct {
	shelves *shelves
	maker   *maker
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
	groups := map[bool]*group{} // by Options.Whole
	for i := range sinks {
		whole := sinks[i].Whole()
		g := groups[whole]
		if g == nil {
			g = &group{newShelves(shelfBytes), &maker{cluster: s.readers[n].Cluster(), tell: teller, lean: !whole, text: o.Text, story: o.Story}}
			groups[whole], s.groups = g, append(s.groups, g)
		}
		g.maker.filters = g.maker.filters || sinks[i].Where != nil
		g.maker.patches = g.maker.patches || slices.Contains(sinks[i].Include, deliver.Patch)
		s.outboxes = append(s.outboxes, &outbox{Journal: j, reader: s.readers[i], shelf: g.shelves.add(), maker: g.maker, log: o.Log})
	}
	for _, g := range s.groups {
		g.shelves.limit /= len(s.groups)
	}
	return s, nil
}

// recorded passes on a change that was just recorded to the pumps that keep up. Changes come in the order of their sequence
// numbers.
func (s *stores) recorded(seq int64, v capture.Version) {
	if !v.Exact {
		return
	}
	for _, g := range s.groups {
		of := v
		if g.maker.lean && v.Op.Differs() || v.Quiet {
			of.BeforeJSON, of.AfterJSON = nil, nil
		}
		g.shelves.recorded(seq, g.maker.capturedSize(&of), func() (deliver.Item, error) { return g.maker.captured(seq, &of) })
	}
}

func (s *stores) close() error {
	var errs []error
	for _, r := range s.readers {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
