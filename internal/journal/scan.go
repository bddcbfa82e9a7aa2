package journal

import (
	"cmp"
	"context"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// scan is one run of a query, in pages: each is one read transaction.
type scan struct {
	r       *Reader
	left    int // of the limit
	f       *filter
	runs    []run // one for each object, where the query names objects
	entries []Entry
	done    bool
}

const (
	// pageSize is how many entries a page has about.
	pageSize = 256
	// pageBlocks is how many blocks are looked into for a page, so that what is rare does not hold a
	// read transaction for long.
	pageBlocks = 32
)

// next returns some of the next entries, valid until it is called again, and sets done with the last.
func (s *scan) next(ctx context.Context, q Query) (entries []Entry, err error) {
	err = s.r.do(ctx, func() error {
		if s.f == nil {
			if s.f, err = s.r.db.filter(q); err != nil {
				return err
			}
			for _, o := range s.f.objects {
				s.runs = append(s.runs, run{object: o, low: s.f.low, high: s.f.high})
			}
		}
		s.entries = s.entries[:0]
		if s.f.byObject {
			return s.merge()
		}
		return s.blocks()
	})
	return s.entries, err
}

// blocks reads blocks until a page is full, and moves the filter's bounds past them.
func (s *scan) blocks() error {
	f := s.f
	for n := 0; n < pageBlocks && len(s.entries) < min(pageSize, s.left); n++ {
		b, err := s.block()
		if err != nil || b == nil {
			s.done = true
			return err
		}
		sql := byRange
		if !f.q.Quiet {
			sql = byLoud
		}
		from := len(s.entries)
		low, high := max(f.low, b.first), min(f.high, b.next()-1)
		if err := s.r.page(sql, []any{low, high}, f, &s.entries); err != nil {
			return err
		}
		if f.q.OldestFirst {
			f.low = high + 1
		} else {
			slices.Reverse(s.entries[from:])
			f.high = low - 1
		}
	}
	return nil
}

// block returns the next block that may have something; nil if there is none.
func (s *scan) block() (*block, error) {
	if s.f.low > s.f.high {
		return nil, nil
	}
	var found *block
	sql, from := s.r.db.blocks(false)+"WHERE first <= ? ORDER BY first DESC", s.f.high
	if s.f.q.OldestFirst {
		sql = s.r.db.blocks(false) + "WHERE first >= (SELECT ifnull(max(first), 0) FROM blocks WHERE first <= ?) ORDER BY first"
		from = s.f.low
	}
	err := s.r.db.query(sql, []any{from}, func(st *sqlite3.Stmt) error {
		b := columnBlock(st)
		if s.f.q.OldestFirst && b.first > s.f.high || !s.f.q.OldestFirst && b.next() <= s.f.low {
			return errDone
		}
		if s.f.mayHave(&b) {
			found = &b
			return errDone
		}
		return nil
	})
	return found, err
}

// run is what is still to be read of one object.
type run struct {
	object    int64
	low, high int64
	entries   []Entry
	read      bool // to the end
}

// fill reads a page of an object's changes if there is none at hand.
func (s *scan) fill(r *run) error {
	for len(r.entries) == 0 && !r.read {
		sql := byNewest
		if s.f.q.OldestFirst {
			sql = byOldest
		}
		var n int
		last := int64(0)
		var records []record
		err := s.r.db.query(s.r.db.records()+sql, []any{r.object, r.low, r.high}, func(st *sqlite3.Stmt) error {
			c := columnRecord(st)
			n, last = n+1, c.seq
			if s.f.wants(&c) {
				records = append(records, c)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i := range records {
			e, err := s.r.entry(&records[i])
			if err != nil {
				return err
			}
			r.entries = append(r.entries, e)
		}
		if s.f.q.OldestFirst {
			r.low = last + 1
		} else {
			r.high = last - 1
		}
		r.read = n < pageSize
	}
	return nil
}

// merge brings the changes of several objects in order until a page is full.
func (s *scan) merge() error {
	for len(s.entries) < pageSize {
		for i := range s.runs {
			if err := s.fill(&s.runs[i]); err != nil {
				return err
			}
		}
		s.runs = slices.DeleteFunc(s.runs, func(r run) bool { return len(r.entries) == 0 })
		if len(s.runs) == 0 {
			s.done = true
			return nil
		}
		first := slices.MinFunc(s.runs, func(a, b run) int {
			if s.f.q.OldestFirst {
				return cmp.Compare(a.entries[0].Seq, b.entries[0].Seq)
			}
			return cmp.Compare(b.entries[0].Seq, a.entries[0].Seq)
		})
		for i := range s.runs {
			if s.runs[i].object == first.object {
				s.entries = append(s.entries, s.runs[i].entries[0])
				s.runs[i].entries = s.runs[i].entries[1:]
			}
		}
	}
	return nil
}
