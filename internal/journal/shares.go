package journal

import (
	"context"
	"slices"
	"strconv"

	"github.com/ncruces/go-sqlite3"
)

// Who writes most pays first when the limit of size removes listed changes: the namespace whose changes take the most, and
// in it an object that takes more than 1/fatShare of that; otherwise the oldest changes of the namespace go. So whoever
// fills the journal loses own history, and others keep theirs up to a fair share.
//
// What a namespace takes is known by marks, one in so many bytes of its changes. They are in memory: the changes that were
// appended since the last time are marked, and at the first time all changes. A change is marked by the size that it has
// then, and its marks go with it, so errors do not add up.

const (
	// sharesMarks is about how many marks a journal at its limit has: a share is known to 1/sharesMarks of
	// the limit.
	sharesMarks = 4096
	// fatShare: an object that takes more than 1/fatShare of its namespace pays before others in there. Otherwise age
	// decides, so that a namespace of many objects keeps a period whole.
	fatShare = 8
	// fatMarks is how many marks it takes to judge an object: with fewer, chance would.
	fatMarks = 16
	// rowSize is about what a change takes in the file besides its contents: 80 bytes, measured for heartbeats of
	// nodes.
	rowSize = 80
)

// shares are the marks of a journal. The zero value has none.
type shares struct {
	of   map[int64]*share // by namespace
	each int64            // bytes for which a mark stands; 0: there are none yet
	n    int64            // number of marks
	upTo int64            // they are of the changes up to this one
}

// share holds the marks of a namespace.
type share struct {
	marks []mark // oldest first
	n     int64  // their number
	rest  int64  // bytes since the last mark
	low   int64  // no listed change of the namespace is before this one
}

// mark is a change with n marks.
type mark struct{ seq, object, n int64 }

// add marks a change.
func (s *shares) add(namespace, seq, object, size int64) {
	sh := s.of[namespace]
	if sh == nil {
		if s.of == nil {
			s.of = map[int64]*share{}
		}
		// Namespaces begin at different offsets: otherwise all that take less than a mark would count as nothing.
		const golden = 0x9e3779b97f4a7c15
		sh = &share{rest: int64(uint64(namespace) * golden >> 1 % uint64(s.each))} //nolint:gosec // any bits do
		s.of[namespace] = sh
	}
	sh.rest += size
	n := sh.rest / s.each
	if sh.rest %= s.each; n > 0 {
		sh.marks = append(sh.marks, mark{seq, object, n})
		sh.n, s.n = sh.n+n, s.n+n
	}
}

// drop forgets the marks of a removed change.
func (s *shares) drop(namespace, seq int64) {
	sh := s.of[namespace]
	if sh == nil {
		return
	}
	if i, ok := slices.BinarySearchFunc(sh.marks, seq, func(a mark, seq int64) int { return int(a.seq - seq) }); ok {
		sh.n, s.n = sh.n-sh.marks[i].n, s.n-sh.marks[i].n
		sh.marks = slices.Delete(sh.marks, i, i+1)
	}
}

// fattest returns the namespace with the most marks, of those with one up to a change; nil if there is none.
func (s *shares) fattest(upTo int64) (namespace int64, of *share) {
	for ns, sh := range s.of {
		if len(sh.marks) == 0 || sh.marks[0].seq > upTo {
			continue
		}
		if of == nil || sh.n > of.n || sh.n == of.n && sh.marks[0].seq < of.marks[0].seq {
			namespace, of = ns, sh
		}
	}
	return namespace, of
}

// fattest returns the object with the most marks, of those with one up to a change, and its first mark. object is 0 if
// none takes so much that it pays before others.
func (sh *share) fattest(upTo int64) (object, seq int64) {
	n, first := map[int64]int64{}, map[int64]int64{}
	for _, s := range sh.marks {
		if n[s.object] += s.n; first[s.object] == 0 {
			first[s.object] = s.seq
		}
	}
	delete(n, 0) // gaps and absences
	most := max(fatMarks-1, sh.n/fatShare)
	for o, n := range n {
		if first[o] <= upTo && (n > most || n == most && object != 0 && first[o] < seq) {
			object, seq, most = o, first[o], n
		}
	}
	return object, seq
}

// weigh marks the changes that were appended since the last time, in small steps.
func (j *Journal) weigh(ctx context.Context, limit int64) error {
	for done := false; !done; {
		err := j.do(ctx, "read", func() (err error) {
			done, err = j.weighSome(limit)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// weighSome marks some changes, and reports whether all are.
func (j *Journal) weighSome(limit int64) (done bool, err error) {
	s := &j.shares
	if s.each == 0 {
		all, free, size, err := j.db.pages()
		if err != nil {
			return false, err
		}
		s.each = max(limit, (all-free)*size)/sharesMarks + 1
	}
	type weighed struct{ namespace, seq, object, size int64 }
	var some []weighed
	to := min(s.upTo+retainWindow, j.tail.next()-1)
	err = j.db.query(`SELECT c.namespace, c.seq, c.object, length(t.before), length(t.after) FROM changes c LEFT JOIN contents t ON t.seq = c.seq
		WHERE c.seq > ? AND c.seq <= ? AND NOT quiet ORDER BY c.seq`, []any{s.upTo, to}, func(st *sqlite3.Stmt) error {
		some = append(some, weighed{st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnInt64(2), rowSize + st.ColumnInt64(3) + st.ColumnInt64(4)})
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, w := range some {
		s.add(w.namespace, w.seq, w.object, w.size)
	}
	s.upTo = to
	return to == j.tail.next()-1, nil
}

// Paid is what a namespace lost because the journal was too big.
type Paid struct {
	// Cluster is as in Kind. Namespace is empty for objects without one.
	Cluster, Namespace string
	// Changes counts those that were removed; Size is about how many bytes the namespace's changes took before.
	Changes int
	Size    int64
}

// ofFattest chooses changes to remove, up to one: of whoever has the most.
func (p *pruner) ofFattest(upTo int64) (old []victim, err error) {
	s := &p.j.shares
	for {
		namespace, sh := s.fattest(upTo)
		if sh == nil { // what is left takes less than a mark
			return old, p.find(&old, oldest, upTo, retainRows)
		}
		object, seq := sh.fattest(upTo)
		if object != 0 {
			err = p.find(&old, victimRows+"WHERE object = ? AND seq <= ? AND NOT quiet ORDER BY seq LIMIT ?", object, seq, retainRows)
		} else {
			seq = sh.marks[0].seq
			err = p.oldestOf(&old, namespace, sh, seq)
		}
		if err != nil || len(old) > 0 {
			return old, err
		}
		s.drop(namespace, seq) // the change is gone
	}
}

// oldestOf finds the oldest listed changes of a namespace, up to one.
func (p *pruner) oldestOf(old *[]victim, namespace int64, sh *share, upTo int64) error {
	one := map[int64]bool{namespace: true}
	return p.j.db.query("SELECT first, first + size, sum FROM blocks WHERE first >= (SELECT ifnull(max(first), 0) FROM blocks WHERE first <= ?) AND first <= ? ORDER BY first",
		[]any{sh.low, upTo}, func(s *sqlite3.Stmt) error {
			first, next, in := s.ColumnInt64(0), s.ColumnInt64(1), sumOf(blob(s, 2))
			if in.namespaces.has(one) {
				err := p.find(old, victimRows+"WHERE seq BETWEEN ? AND ? AND namespace = ? AND NOT quiet ORDER BY seq LIMIT ?",
					max(first, sh.low), min(next-1, upTo), namespace, retainRows-len(*old))
				if err != nil || len(*old) == retainRows {
					return orElse(err, errDone)
				}
			}
			if len(*old) == 0 {
				sh.low = min(next, upTo+1)
			}
			return nil
		})
}

// cutKey is the key in meta of the time of the newest listed change that was removed because the journal was too big, in
// milliseconds, and the number of its namespace, separated by a space.
const cutKey = "cut"

// noteCut notes of changes that are removed because the journal is too big until when the history has holes.
func (p *pruner) noteCut(victims []victim) error {
	var newest victim
	for _, v := range victims {
		if !v.quiet && v.seen > newest.seen {
			newest = v
		}
	}
	if newest.seen == 0 {
		return nil
	}
	return p.j.db.exec(`INSERT INTO meta VALUES (?, ?)
		ON CONFLICT DO UPDATE SET value = excluded.value WHERE CAST(excluded.value AS INTEGER) > CAST(value AS INTEGER)`,
		cutKey, strconv.FormatInt(newest.seen, 10)+" "+strconv.FormatInt(newest.namespace, 10))
}
