package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// maxDamages is how many damages a report names.
const maxDamages = 100

// Report is what Verify found.
type Report struct {
	// Changes and Objects were read.
	Changes, Objects int
	// Damages are for people, the first 100 of Damaged.
	Damages []string
	Damaged int
}

func (r *Report) damage(format string, args ...any) {
	if r.Damaged++; r.Damaged <= maxDamages {
		r.Damages = append(r.Damages, fmt.Sprintf(format, args...))
	}
}

// Verify reads everything: pages, contents with their checksums, and what sums up others. What it finds
// is in the report; an error says that it could not go on.
func (r *Reader) Verify(ctx context.Context) (Report, error) {
	var rep Report
	if err := r.verifyPages(ctx, &rep); err != nil {
		return rep, err
	}
	if rep.Damaged > 0 {
		return rep, nil // what follows would only repeat it
	}
	err := r.verifyObjects(ctx, &rep)
	if err == nil {
		err = r.verifyBlocks(ctx, &rep)
	}
	var d *DamagedError
	if errors.As(err, &d) {
		rep.damage("%s: %v", d.What, d.Err)
		err = nil
	}
	return rep, err
}

func (r *Reader) verifyPages(ctx context.Context, rep *Report) error {
	err := r.do(ctx, func() error {
		old := r.db.c.SetInterrupt(ctx) // it can take minutes
		defer r.db.c.SetInterrupt(old)
		return r.db.query("PRAGMA integrity_check", nil, func(s *sqlite3.Stmt) error {
			if text := s.ColumnText(0); text != "ok" {
				rep.damage("%s", strings.TrimSpace(text))
			}
			return nil
		})
	})
	var d *DamagedError
	if errors.As(err, &d) {
		rep.damage("page: %v", d.Err)
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("verify journal: %w", ctx.Err())
	}
	return err
}

func (r *Reader) verifyObjects(ctx context.Context, rep *Report) error {
	for after := int64(0); ; {
		var ids []int64
		err := r.do(ctx, func() error {
			err := r.db.query("SELECT id FROM objects WHERE id > ? ORDER BY id LIMIT 100", []any{after}, func(s *sqlite3.Stmt) error {
				ids = append(ids, s.ColumnInt64(0))
				return nil
			})
			for _, id := range ids {
				if err == nil {
					err = r.verifyObject(id, rep)
				}
			}
			return err
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
	}
}

// verifyObject reads an object's chain from its state on, the newest change first.
func (r *Reader) verifyObject(id int64, rep *Report) error {
	rep.Objects++
	state, err := r.db.state(id)
	if err != nil {
		return err
	}
	var next []byte
	if state != nil {
		if next, err = r.codec.open(state, nil); err != nil {
			rep.damage("state of object %d: %v", id, err)
		}
	}
	newest := int64(0)
	err = r.db.query("SELECT seq, op, before, after FROM changes WHERE object = ? ORDER BY seq DESC", []any{id}, func(s *sqlite3.Stmt) error {
		l := link{s.ColumnInt64(0), opOf(s.ColumnInt(1)), blob(s, 2), blob(s, 3)}
		newest = max(newest, l.seq)
		rep.Changes++
		base := next
		next = nil
		err := r.codec.unwind(r.path, []link{l}, base, func(_ *link, before, _ []byte) error {
			next = before
			return nil
		})
		if err != nil {
			rep.damage("%v", errors.Unwrap(err))
		}
		return nil
	})
	if err != nil {
		return err
	}
	last, err := r.db.integer("SELECT last FROM objects WHERE id = ?", id)
	if last != newest {
		rep.damage("object %d ends with change %d, not %d", id, newest, last)
	}
	return err
}

// verifyBlocks compares the blocks with the changes that they sum up.
func (r *Reader) verifyBlocks(ctx context.Context, rep *Report) error {
	for from := int64(0); ; {
		found := false
		err := r.do(ctx, func() error {
			var b block
			err := r.db.query("SELECT * FROM blocks WHERE first > ? ORDER BY first LIMIT 1", []any{from}, func(s *sqlite3.Stmt) error {
				b, found = columnBlock(s), true
				return nil
			})
			if err != nil || !found {
				return err
			}
			from = b.first
			return r.verifyBlock(&b, rep)
		})
		if err != nil || !found {
			return err
		}
	}
}

func (r *Reader) verifyBlock(b *block, rep *Report) error {
	var entries []Entry
	if err := r.page(byRange, []any{b.first, b.next() - 1}, nil, &entries); err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		if e.Op == event.Gap {
			rep.Changes++
		}
		low, _ := idRange(e.ID)
		known := false
		b.find(low, low, func(seq int64) { known = known || seq == e.Seq })
		kind, err := r.names.kindID(e.Kind)
		if err != nil {
			return err
		}
		when := e.Time.UnixMilli()
		if !known || when < b.oldest || when > b.newest || !e.Quiet && !b.hasKind(map[int64]bool{kind: true}) {
			rep.damage("change %d is not as its block %d says", e.Seq, b.first)
		}
	}
	return nil
}
