package journal

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// tally is how many listed changes of a kind in a namespace, with an operation and a severity, happened in a second. Changes whose time is an interval count
// at its end.
type tally struct {
	second          int64
	kind, namespace int64
	op, severity    int
	n               int64
}

// tallies are those of a block. A chart of a million changes reads 4,000 of them instead of the changes: see
// BenchmarkCounts.
type tallies []tally

// opBits is how many bits of a stored count's third number are the operation. The rest are the severity.
const opBits = 4

// mergeWithin is how many of the last counts are searched for the same one.
const mergeWithin = 16

// add counts a listed change that happened at a time in milliseconds.
func (c *tallies) add(at, kind, namespace int64, op, severity int) {
	second := at / 1000
	for i := len(*c) - 1; i >= max(0, len(*c)-mergeWithin); i-- {
		if k := &(*c)[i]; k.second == second && k.kind == kind && k.namespace == namespace && k.op == op && k.severity == severity {
			k.n++
			return
		}
	}
	*c = append(*c, tally{second, kind, namespace, op, severity, 1})
}

// bytes encodes the counts for the file: of each, the varint of its second minus that of the one before, and uvarints.
func (c tallies) bytes() []byte {
	b := make([]byte, 0, 8*len(c))
	last := int64(0)
	for _, k := range c {
		b = binary.AppendVarint(b, k.second-last)
		for _, v := range []int64{k.kind, k.namespace, int64(k.op | k.severity<<opBits), k.n} {
			b = binary.AppendUvarint(b, uint64(v)) //nolint:gosec // never negative
		}
		last = k.second
	}
	return b
}

// eachTally undoes bytes, and reports whether they are well-formed.
func eachTally(b []byte, f func(*tally)) bool {
	var k tally
	for len(b) > 0 {
		delta, n := binary.Varint(b)
		if n <= 0 {
			return false
		}
		b = b[n:]
		k.second += delta
		var v [4]int64
		for i := range v {
			u, n := binary.Uvarint(b)
			if n <= 0 {
				return false
			}
			v[i], b = int64(u), b[n:] //nolint:gosec // the same bits
		}
		k.kind, k.namespace, k.op, k.severity, k.n = v[0], v[1], int(v[2]&(1<<opBits-1)), int(v[2]>>opBits), v[3]
		f(&k)
	}
	return true
}

// recount counts the listed changes of a block.
func (db *db) recount(first, next int64) (c tallies, err error) {
	const sql = "SELECT time, kind, namespace, op, severity FROM changes WHERE seq >= ? AND seq < ? AND NOT quiet ORDER BY seq"
	err = db.query(sql, []any{first, next}, func(s *sqlite3.Stmt) error {
		c.add(s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt(3), s.ColumnInt(4))
		return nil
	})
	return c, err
}

// Series is how many changes of a kind in a namespace happened in each step of a time range.
type Series struct {
	Op        event.Op
	Kind      Kind
	Namespace string
	Counts    []int
}

// countedBlocks is how many blocks are read at a time.
const countedBlocks = 512

// maxSteps bounds the steps of Counts.
const maxSteps = 10_000

// Counts counts the listed changes that happened from q.Since to q.Until, in steps of whole seconds, of which the
// first begins at q.Since.Truncate(step).
// Of q it uses Since and Until, which must be set, Clusters, Resources, Namespaces, Without, Ops, Severities, Snapshots and Scope. A change whose time is only
// known to be in an interval counts at its end. The series are in no particular order; a step without changes is 0.
func (r *Reader) Counts(ctx context.Context, q Query, step time.Duration) (all []Series, err error) {
	c := counting{
		since: q.Since.Unix(), base: q.Since.Truncate(step).Unix(), until: q.Until.Unix(), step: max(int64(step/time.Second), 1),
		series: map[seriesKey]*Series{},
	}
	if q.Until.Nanosecond() > 0 {
		c.until++
	}
	c.steps = min(max((c.until-c.base+c.step-1)/c.step, 0), maxSteps)
	for done := false; !done && err == nil; {
		err = r.do(ctx, func() error {
			if c.filter == nil {
				if c.filter, err = r.db.filter(Query{Clusters: q.Clusters, Resources: q.Resources, Namespaces: q.Namespaces, Without: q.Without, Ops: q.Ops, Severities: q.Severities, Snapshots: q.Snapshots, Scope: q.Scope}); err != nil {
					return err
				}
				if c.low, c.high, err = r.db.bounded(c.since*1000, c.until*1000); err != nil {
					return err
				}
			}
			done, err = c.page(r)
			return err
		})
	}
	if err == nil {
		err = r.do(ctx, func() error { return c.forgetFormer(r.db) })
	}
	for _, s := range c.series {
		if s.Counts == nil { // not selected
			continue
		}
		all = append(all, *s)
	}
	return all, err
}

type seriesKey struct {
	kind, namespace int64
	op              int
}

// counting is one run of Counts.
type counting struct {
	since, base, until, step, steps int64
	low, high                       int64 // blocks to read
	filter                          *filter
	series                          map[seriesKey]*Series
	last                            seriesKey
	lastSeries                      *Series // of last
}

// page counts some blocks, and reports whether they were the last.
func (c *counting) page(r *Reader) (done bool, err error) {
	n := 0
	var bad int64
	done = true
	err = r.db.query("SELECT b.first, c.counts FROM blocks b JOIN block_counts c ON c.first = b.first WHERE b.first BETWEEN ? AND ? AND b.newest >= ? AND b.oldest < ? ORDER BY b.first",
		[]any{c.low, c.high, c.since * 1000, c.until * 1000}, func(s *sqlite3.Stmt) error {
			if n++; n > countedBlocks {
				c.low, done = s.ColumnInt64(0), false
				return errDone
			}
			if !eachTally(s.ColumnRawBlob(1), c.add) {
				bad = s.ColumnInt64(0)
				return errDone
			}
			return nil
		})
	if err == nil && bad != 0 {
		err = damaged(r.path, "blocks", "unreadable counts of block %d", bad)
	}
	if err != nil {
		return false, err
	}
	return done, c.name(r)
}

func (c *counting) add(k *tally) {
	if k.second < c.since || k.second >= c.until || !c.filter.judged(k.op, k.severity) {
		return
	}
	since, ok := c.filter.scope.counts(k)
	if !ok || k.second*1000 < since {
		return
	}
	key := seriesKey{k.kind, k.namespace, k.op}
	if c.lastSeries == nil || key != c.last {
		c.last, c.lastSeries = key, c.series[key]
		if c.lastSeries == nil {
			c.lastSeries = &Series{Op: opOf(k.op)}
			if c.wants(k) {
				c.lastSeries.Counts = make([]int, c.steps)
			}
			c.series[key] = c.lastSeries
		}
	}
	if i := (k.second - c.base) / c.step; i < int64(len(c.lastSeries.Counts)) {
		c.lastSeries.Counts[i] += int(k.n)
	}
}

// wants reports whether a series is selected: as filter.wants, for what a count knows.
func (c *counting) wants(k *tally) bool {
	r := record{op: k.op, severity: k.severity, kind: k.kind, namespace: k.namespace, object: 1, created: math.MaxInt64}
	return c.filter.wants(&r)
}

// counts reports whether a tally is visible, and of which time on it counts, in milliseconds. Gaps of a whole kind count only
// for readers of all namespaces.
func (s *scope) counts(k *tally) (since int64, ok bool) {
	if s == nil || opOf(k.op) == event.Absent {
		return anyTime, true
	}
	return s.in(s.kinds[k.kind], k.namespace)
}

// forgetFormer takes away what the tallies have of objects that are older than their namespaces: changes that were noticed
// late, such as deletions while the daemon did not run.
func (c *counting) forgetFormer(db *db) error {
	if c.filter.scope == nil {
		return nil
	}
	const sql = `SELECT c.time, c.kind, c.namespace, c.op, c.severity FROM objects o JOIN changes c ON c.object = o.id
		WHERE o.resource = ? AND o.namespace = ? AND o.created < ? AND c.time >= ? AND NOT c.quiet`
	for resource, in := range c.filter.scope.narrow {
		for namespace, since := range in {
			if since == anyTime || !c.filter.in(namespace) {
				continue
			}
			err := db.query(sql, []any{resource, namespace, since, since}, func(s *sqlite3.Stmt) error {
				c.add(&tally{s.ColumnInt64(0) / 1000, s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt(3), s.ColumnInt(4), -1})
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// name names the selected series.
func (c *counting) name(r *Reader) (err error) {
	for k, s := range c.series {
		if s.Counts == nil || s.Kind.Resource != "" {
			continue
		}
		if s.Kind, err = r.names.kind(k.kind); err != nil {
			return err
		}
		if s.Namespace, err = r.names.namespaces.text(r.db, k.namespace); err != nil {
			return err
		}
	}
	return nil
}

func (db *db) saveCounts(first int64, c tallies) error {
	return db.exec("INSERT OR REPLACE INTO block_counts VALUES (?, ?)", first, c.bytes())
}

// counts returns the stored counts of a block.
func (db *db) counts(first int64) (c tallies, err error) {
	ok := true
	err = db.query("SELECT counts FROM block_counts WHERE first = ?", []any{first}, func(s *sqlite3.Stmt) error {
		ok = eachTally(s.ColumnRawBlob(0), func(k *tally) { c = append(c, *k) })
		return nil
	})
	if err == nil && !ok {
		err = damaged(db.path, "blocks", "unreadable counts of block %d", first)
	}
	return c, err
}
