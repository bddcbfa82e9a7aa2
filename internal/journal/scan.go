package journal

import (
	"container/heap"
	"context"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// scan is one run of a query, in pages: each is one read transaction.
type scan struct {
	r       *Reader
	left    int // of the limit
	f       *filter
	runs    runs // one for each object, where the query names objects
	entries []Entry
	done    bool
}

const (
	// pageSize is how many entries a page has about.
	pageSize = 256
	// pageBlocks is how many blocks are looked into for a page, so that what is rare does not hold a
	// read transaction for long.
	pageBlocks = 32
	// pageLooks is how often objects are looked at for one, likewise.
	pageLooks = 512
)

// next returns some of the next entries, valid until it is called again, and sets done with the last.
func (s *scan) next(ctx context.Context, q Query) (entries []Entry, err error) {
	err = s.r.do(ctx, func() error {
		if s.f == nil {
			if s.f, err = s.r.db.filter(q); err != nil {
				return err
			}
			s.begin()
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
	entries   []Entry // that were read
	read      bool    // to the end
	found     bool    // what is still to be read begins where its bound says
	page      int     // how many are read next
}

// runs is a heap of them, by what comes next.
type runs struct {
	all         []*run
	oldestFirst bool
}

// next is the number of a run's next change. Where that was not read yet, it cannot come before it.
func (h *runs) next(i int) int64 {
	r := h.all[i]
	switch {
	case len(r.entries) > 0:
		return r.entries[0].Seq
	case h.oldestFirst:
		return r.low
	default:
		return r.high
	}
}

func (h *runs) Len() int      { return len(h.all) }
func (h *runs) Swap(i, j int) { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *runs) Push(r any)    { h.all = append(h.all, r.(*run)) }

func (h *runs) Less(i, j int) bool {
	if h.oldestFirst {
		return h.next(i) < h.next(j)
	}
	return h.next(i) > h.next(j)
}

func (h *runs) Pop() any {
	last := len(h.all) - 1
	r := h.all[last]
	h.all = h.all[:last]
	return r
}

// begin makes a run of each object that a query names. How much is read of each depends on how many there
// are: thousands may share a name. The newest first, only those are read whose turn it is.
func (s *scan) begin() {
	s.runs = runs{oldestFirst: s.f.q.OldestFirst}
	some := slices.DeleteFunc(s.f.objects, func(o object) bool { return o.last < s.f.low })
	for _, o := range some {
		r := &run{object: o.id, low: s.f.low, high: s.f.high, page: max(4, pageSize/len(some))}
		if !s.f.q.OldestFirst {
			r.high, r.found = min(r.high, o.last), true
		}
		s.runs.all = append(s.runs.all, r)
	}
	heap.Init(&s.runs)
}

// find looks where a run begins, for which an index is enough. The newest first, that is known.
func (s *scan) find(r *run) (err error) {
	r.found = true
	if r.low, err = s.r.db.integer("SELECT min(seq) FROM changes WHERE object = ? AND seq BETWEEN ? AND ?", r.object, r.low, r.high); r.low == 0 {
		r.read = true
	}
	return err
}

// fill reads some of an object's changes.
func (s *scan) fill(r *run) error {
	sql := byNewest
	if s.f.q.OldestFirst {
		sql = byOldest
	}
	n, last := 0, int64(0)
	var records []record
	err := s.r.db.query(s.r.db.records()+sql, []any{r.object, r.low, r.high}, func(st *sqlite3.Stmt) error {
		c := columnRecord(st)
		n, last = n+1, c.seq
		if s.f.wants(&c) {
			records = append(records, c)
		}
		if n == r.page { // a LIMIT that is bound would have SQLite plan anew each time
			return errDone
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
	r.read = n < r.page
	r.page = min(2*r.page, pageSize)
	return nil
}

// merge brings the changes of several objects in order until a page is full, or many objects were looked at.
func (s *scan) merge() error {
	for looked := 0; looked < pageLooks && len(s.entries) < min(pageSize, s.left) && len(s.runs.all) > 0; {
		r := s.runs.all[0]
		var err error
		switch {
		case len(r.entries) > 0:
			s.entries = append(s.entries, r.entries[0])
			r.entries = r.entries[1:]
		case !r.found:
			err = s.find(r)
			looked++
		default:
			err = s.fill(r)
			looked++
		}
		if err != nil {
			return err
		}
		if len(r.entries) == 0 && r.read {
			heap.Pop(&s.runs)
		} else {
			heap.Fix(&s.runs, 0)
		}
	}
	s.done = len(s.runs.all) == 0
	return nil
}
