package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// Reader reads a journal, also while another process or a Journal of this process writes it.
type Reader struct {
	path, cluster string

	mu     sync.Mutex
	db     *db // nil once closed
	codec  *codec
	names  names
	ahead  forwards
	places places
}

// OpenReader opens a journal to read. A file that is not a journal of this format is a *FormatError; a missing file is
// fs.ErrNotExist.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	path, err := place(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	r := &Reader{path: path}
	if err := r.open(); err != nil {
		err = classify("open", path, err)
		if errors.Is(err, ErrFull) {
			err = fmt.Errorf("%w: reading needs some 100 KiB beside the file; free space, or copy the journal to another disk", err)
		}
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Reader) open() error {
	var err error
	if r.codec, err = newCodec(); err != nil {
		return err
	}
	if err = makeFiles(r.path); err != nil {
		return unusable(r.path, err)
	}
	// A read-only connection could not recover a journal after a crash.
	r.db, err = openDB(r.path, "PRAGMA busy_timeout = 5000; PRAGMA query_only = ON; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON")
	if err != nil {
		return err
	}
	if err := r.db.checkFormat(); err != nil {
		return err
	}
	r.names = newNames(r.db)
	r.cluster, err = r.db.cluster()
	return err
}

// Close closes the reader.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.codec != nil {
		r.codec.close()
		r.codec = nil
	}
	r.ahead = forwards{}
	if r.db == nil {
		return nil
	}
	db := r.db
	r.db = nil
	if err := db.close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// Cluster is the name in the ids of changes.
func (r *Reader) Cluster() string { return r.cluster }

// Looked returns how many objects and changes the reader has read, for tests that an answer does not cost more because of what
// its reader may not see.
func (r *Reader) Looked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.db.looked
}

// do runs f under the lock, on one state of the file.
func (r *Reader) do(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.db == nil {
		return ErrClosed
	}
	return classify("read", r.path, r.db.snapshot(f))
}

// Last returns the newest sequence number ever assigned; 0 in a new journal.
func (r *Reader) Last(ctx context.Context) (seq int64, err error) {
	err = r.do(ctx, func() error {
		tail, err := r.db.tail()
		seq = tail.next() - 1
		return err
	})
	return seq, err
}

// Entry is a change of the journal. Its methods need its Reader, or its Contents, to be open.
type Entry struct {
	// Seq is the change's sequence number; ID is its event's id.
	Seq int64
	ID  string
	Meta
	object int64    // its number in the file of a Reader; else 0
	from   Contents // nil: the entry has no objects to read
}

// Contents reads the objects of entries. A Reader is one; entries that come from elsewhere bring another: see
// Entry.ReadFrom.
type Contents interface {
	// Contents is Entry.Contents.
	Contents(ctx context.Context, e *Entry) (before, after []byte, err error)
}

// ReadFrom makes c read the entry's objects.
func (e *Entry) ReadFrom(c Contents) { e.from, e.object = c, 0 }

// Contents returns the object's JSON before and after the change; nil if it did not exist. The error is ErrNotFound if
// retention has removed the change since, a *DamagedError if it is damaged, and ErrPurged if before was purged; after
// is returned with ErrPurged.
func (e *Entry) Contents(ctx context.Context) (before, after []byte, err error) {
	switch {
	case !e.Op.HasObject():
		return nil, nil, nil
	case e.from == nil:
		return nil, nil, fmt.Errorf("read change %s: the entry does not come from a journal", e.ID)
	}
	return e.from.Contents(ctx, e)
}

// Contents is Entry.Contents for an entry of this reader.
func (r *Reader) Contents(ctx context.Context, e *Entry) (before, after []byte, err error) {
	v, ok := r.kept(e.object, e.Seq)
	if !ok {
		err = r.do(ctx, func() error {
			v, err = r.contents(e.object, e.Seq)
			return err
		})
	}
	if err == nil && v.purged {
		err = ErrPurged
	}
	return v.before, v.after, err
}

// record is a row of changes with the columns joined to it.
type record struct {
	seq, object, kind       int64
	op, severity            int
	quiet, routine          bool
	version                 string
	time, lag, since        int64
	bounded                 bool // since is set
	manager                 int64
	owner                   string
	namespace               int64
	name, uid               string
	gapFrom, gapTo, gapText string
	created                 int64
	epoch                   int64
	form                    uint64
}

// The conditions that follow selectRecords.
const (
	byRange  = "WHERE c.seq BETWEEN ? AND ? ORDER BY c.seq"
	byOldest = "WHERE c.object = ? AND c.seq BETWEEN ? AND ? ORDER BY c.seq"
	byNewest = "WHERE c.object = ? AND c.seq BETWEEN ? AND ? ORDER BY c.seq DESC"
)

// selectRecords is the query of records, without its condition.
var selectRecords = recordsBy("")

// recordsBy is selectRecords by an index of changes.
func recordsBy(index string) string {
	return `SELECT c.seq, c.object, c.kind, c.op, c.quiet, c.version, c.time, c.lag, c.since, c.manager, ifnull(c.owner, o.owner),
	c.namespace, o.name, o.uid, g."from", g."to", g.reason, c.epoch, c.form, c.severity, o.created, c.routine
	FROM changes c ` + index + ` LEFT JOIN objects o ON o.id = c.object LEFT JOIN gaps g ON c.object IS NULL AND g.seq = c.seq `
}

// after returns the moment after which the change happened, if known. net says that a list derived the change; else the
// server sent it late, which a negative since says.
func (r *record) after() (at int64, net, ok bool) {
	seen := r.time + r.lag
	switch {
	case !r.bounded:
		return 0, false, false
	case r.since < 0:
		return seen + r.since + 1, false, true
	}
	return seen - r.since, opOf(r.op).HasObject(), true
}

// span returns when the change happened, or the interval in which it did; see Meta.Span.
func (r *record) span() (from, to int64) {
	if at, _, ok := r.after(); ok && (r.lag == 0 || opOf(r.op) == event.Deleted) {
		return min(at, r.time), r.time
	}
	return r.time, r.time
}

func columnRecord(s *sqlite3.Stmt) record {
	return record{
		seq: s.ColumnInt64(0), object: s.ColumnInt64(1), kind: s.ColumnInt64(2), op: s.ColumnInt(3), quiet: s.ColumnBool(4),
		version: s.ColumnText(5), time: s.ColumnInt64(6), lag: s.ColumnInt64(7), since: s.ColumnInt64(8),
		bounded: s.ColumnType(8) != sqlite3.NULL, manager: s.ColumnInt64(9), owner: s.ColumnText(10), namespace: s.ColumnInt64(11),
		name: s.ColumnText(12), uid: s.ColumnText(13), gapFrom: s.ColumnText(14), gapTo: s.ColumnText(15), gapText: s.ColumnText(16),
		epoch:    s.ColumnInt64(17),
		form:     uint64(s.ColumnInt64(18)), //nolint:gosec // the same bits
		severity: s.ColumnInt(19), created: s.ColumnInt64(20), routine: s.ColumnBool(21),
	}
}

// entry makes an entry from a record.
func (r *Reader) entry(c *record) (Entry, error) {
	kind, err := r.names.kind(c.kind)
	if err != nil {
		return Entry{}, err
	}
	ns, err := r.names.namespaces.text(r.db, c.namespace)
	if err != nil {
		return Entry{}, err
	}
	manager, err := r.names.managers.text(r.db, c.manager)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Seq: c.seq, object: c.object, from: r, Meta: Meta{
		Op: opOf(c.op), Kind: kind, Namespace: ns, Name: c.name, UID: uid(c.uid), ResourceVersion: c.version,
		Manager: manager, Owner: ownerOf(c.owner), Quiet: c.quiet, Routine: c.routine, Epoch: c.epoch, Form: c.form,
	}}
	c.setTimes(&e.Meta)
	switch e.Op {
	case event.Gap:
		e.Gap = &event.GapInfo{From: c.gapFrom, To: c.gapTo, Reason: c.gapText}
	case event.Absent:
		if e.Absence, err = absenceOf(c); err != nil {
			return Entry{}, damaged(r.path, fmt.Sprintf("change %d", c.seq), "absence: %w", err)
		}
	}
	if c.severity < 0 || c.severity >= len(severities) {
		return Entry{}, damaged(r.path, fmt.Sprintf("change %d", c.seq), "severity %d", c.severity)
	}
	e.Severity = severities[c.severity]
	if e.Op == "" || e.Op.HasObject() && c.uid == "" {
		return Entry{}, damaged(r.path, fmt.Sprintf("change %d", c.seq), "operation %d of object %d", c.op, c.object)
	}
	e.ID = e.Meta.ID(r.cluster)
	return e, nil
}

// ByID returns the change whose id is, or begins with, prefix. No match is ErrNotFound, several are an *AmbiguousError.
func (r *Reader) ByID(ctx context.Context, prefix string) (Entry, error) {
	var found []Entry
	low, high := idRange(prefix)
	err := r.do(ctx, func() error {
		var seqs []int64
		err := r.db.query("SELECT first, ids FROM block_ids ORDER BY first DESC", nil, func(s *sqlite3.Stmt) error {
			b := columnIDs(s)
			b.find(low, high, func(seq int64) { seqs = append(seqs, seq) })
			if len(seqs) > 1000 {
				return errDone // a short prefix: at least two of these match
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, seq := range seqs {
			if err := r.page(byRange, []any{seq, seq}, nil, &found); err != nil {
				return err
			}
			if n := len(found); n > 0 && !strings.HasPrefix(found[n-1].ID, prefix) {
				found = found[:n-1]
			}
			if len(found) > 3 {
				break
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return Entry{}, err
	case len(found) == 0 || prefix == "":
		return Entry{}, ErrNotFound
	case len(found) > 1:
		a := &AmbiguousError{Prefix: prefix}
		for i := range found {
			a.IDs = append(a.IDs, found[i].ID)
		}
		return Entry{}, a
	}
	return found[0], nil
}

// page appends the matching entries of a query of records.
func (r *Reader) page(sql string, args []any, f *filter, to *[]Entry) error {
	var records []record // read all first: entry runs other statements
	err := r.db.query(selectRecords+sql, args, func(s *sqlite3.Stmt) error {
		r.db.looked++
		if c := columnRecord(s); f == nil || f.wants(&c) {
			records = append(records, c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.entries(records, to)
}

// entries appends the entries of records.
func (r *Reader) entries(records []record, to *[]Entry) error {
	for i := range records {
		e, err := r.entry(&records[i])
		if err != nil {
			return err
		}
		*to = append(*to, e)
	}
	return nil
}

// Kinds returns all kinds that the journal has seen.
func (r *Reader) Kinds(ctx context.Context) (kinds []Kind, err error) {
	err = r.do(ctx, func() (err error) {
		kinds, err = r.db.kinds()
		return err
	})
	return kinds, err
}

type pauseKey struct{}

// WithPause returns a context in which Rows pauses after it has read for so long. Otherwise it could read the whole journal
// without finding a change.
func WithPause(ctx context.Context, after time.Duration) context.Context {
	return context.WithValue(ctx, pauseKey{}, after)
}

// Paused ends Rows after the time of WithPause: the caller resumes after, or before, sequence number Seq.
type Paused struct{ Seq int64 }

func (p *Paused) Error() string { return fmt.Sprintf("paused at change %d", p.Seq) }

// pauseOf returns a function that reports whether the time has passed.
func pauseOf(ctx context.Context) func() bool {
	began := time.Now()
	after, limited := ctx.Value(pauseKey{}).(time.Duration)
	return func() bool { return limited && time.Since(began) >= after }
}

// Rows yields the changes that a query selects. An error ends the sequence: a *Paused only with WithPause. The journal may be written meanwhile: a new
// change is yielded if it comes after those yielded so far; where the query names objects, only if the object has
// unread changes.
func (r *Reader) Rows(ctx context.Context, q Query) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r.mu.Lock()
		r.ahead.on = q.OldestFirst
		r.mu.Unlock()
		s, pause := scan{r: r, left: q.Limit}, pauseOf(ctx)
		if q.Limit == 0 {
			s.left = math.MaxInt
		}
		for !s.done {
			entries, err := s.next(ctx, q)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for i := range entries {
				if !yield(entries[i], nil) {
					return
				}
				if s.left--; s.left == 0 {
					return
				}
			}
			if !s.done && pause() {
				yield(Entry{}, &Paused{s.reached()})
				return
			}
		}
		r.mu.Lock()
		r.ahead.clear()
		r.mu.Unlock()
	}
}
