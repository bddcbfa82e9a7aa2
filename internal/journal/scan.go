package journal

import (
	"container/heap"
	"context"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// scan is one run of a query, in pages. Each page is one read transaction.
type scan struct {
	r       *Reader
	left    int // entries until the limit
	f       *filter
	runs    runs // one per object, if the query names objects
	entries []Entry
	done    bool
}

const (
	// pageSize is the approximate number of entries in a page.
	pageSize = 256
	// pageBlocks and pageReads bound the blocks, or the reads of objects, per page, so that a rare match does not
	// keep a read transaction open for long.
	pageBlocks = 32
	pageReads  = 512
	// pageIndexed is how many sequence numbers of a partial index are in a page.
	pageIndexed = 1 << 17
)

// next returns the next entries, valid until the next call, and sets done with the last of them.
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
		if index, where := s.f.rare(); index != "" {
			return s.rare(index, where)
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
		from := len(s.entries)
		low, high := max(f.low, b.first), min(f.high, b.next()-1)
		if err := s.r.page("WHERE c.seq BETWEEN ? AND ?"+f.sql+" ORDER BY c.seq", append([]any{low, high}, f.args...), f, &s.entries); err != nil {
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

// rare reads a partial index of changes until a page is full, and moves the filter's bounds past what it read.
func (s *scan) rare(index, where string) error {
	f := s.f
	newest, err := s.r.db.integer("SELECT max(seq) FROM changes")
	if err != nil {
		return err
	}
	end := min(f.high, newest)
	low, high, order := f.low, end, "DESC"
	if f.q.OldestFirst {
		high, order = min(high, low+pageIndexed), "ASC"
	} else {
		low = max(low, high-pageIndexed)
	}
	var records []record
	read := 0
	sql := recordsBy("INDEXED BY "+index) + "WHERE " + where + " AND c.seq BETWEEN ? AND ?" + f.sql + " ORDER BY c.seq " + order
	err = s.r.db.query(sql, append([]any{low, high}, f.args...), func(st *sqlite3.Stmt) error {
		c := columnRecord(st)
		s.r.db.looked++
		read++
		if f.wants(&c) {
			records = append(records, c)
		}
		if len(records) == min(pageSize, s.left) || read == pageBlocks*blockSize {
			low, high = c.seq, c.seq
			return errDone
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.q.OldestFirst {
		f.low = high + 1
	} else {
		f.high, end = low-1, low-1
	}
	s.done = f.low > end
	return s.r.entries(records, &s.entries)
}

// reached returns the change up to which, in the query's order, all were read.
func (s *scan) reached() int64 {
	low, high := s.f.low, s.f.high
	if s.f.byObject {
		low, high = s.runs.next(0), s.runs.next(0)
	}
	if s.f.q.OldestFirst {
		return low - 1
	}
	return high + 1
}

// block returns the next block that may have a match; nil at the end.
func (s *scan) block() (*block, error) {
	if s.f.low > s.f.high {
		return nil, nil
	}
	var found *block
	sql, from := selectBlocks+"WHERE first <= ? ORDER BY first DESC", s.f.high
	if s.f.q.OldestFirst {
		sql = selectBlocks + "WHERE first >= (SELECT ifnull(max(first), 0) FROM blocks WHERE first <= ?) ORDER BY first"
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

// run is the unread part of one object's changes.
type run struct {
	object    int64
	low, high int64
	entries   []Entry // read, not yet merged
	read      bool    // all were read
	found     bool    // the bound is the next change
	page      int     // how many to read next
}

// runs is a heap of runs by their next change.
type runs struct {
	all         []*run
	oldestFirst bool
}

// next returns the number of a run's next change, or a bound before which it cannot come.
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

// begin makes a run for each object that the query names. The page size per object depends on their number: thousands
// may share a name. Newest first, only the runs at the top of the heap are read.
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

// find moves a run's low bound to its next change, from an index alone. Newest first, the bound is known.
func (s *scan) find(r *run) (err error) {
	r.found = true
	if r.low, err = s.r.db.integer("SELECT min(seq) FROM changes WHERE object = ? AND seq BETWEEN ? AND ?", r.object, r.low, r.high); r.low == 0 {
		r.read = true
	}
	return err
}

// fill reads a page of an object's changes.
func (s *scan) fill(r *run) error {
	sql := byNewest
	if s.f.q.OldestFirst {
		sql = byOldest
	}
	n, last := 0, int64(0)
	var records []record
	err := s.r.db.query(selectRecords+sql, []any{r.object, r.low, r.high}, func(st *sqlite3.Stmt) error {
		c := columnRecord(st)
		s.r.db.looked++
		n, last = n+1, c.seq
		if s.f.wants(&c) {
			records = append(records, c)
		}
		if n == r.page { // with a bound LIMIT, SQLite would plan the query again each time
			return errDone
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.r.entries(records, &r.entries); err != nil {
		return err
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

// merge merges the changes of several objects in order until a page is full or the reads are used up.
func (s *scan) merge() error {
	for reads := 0; reads < pageReads && len(s.entries) < min(pageSize, s.left) && len(s.runs.all) > 0; {
		r := s.runs.all[0]
		var err error
		switch {
		case len(r.entries) > 0:
			s.entries = append(s.entries, r.entries[0])
			r.entries = r.entries[1:]
		case !r.found:
			err = s.find(r)
			reads++
		default:
			err = s.fill(r)
			reads++
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
