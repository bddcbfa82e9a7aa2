package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/story"
)

// Append writes batches in one transaction. When it returns nil they are durable; on an error nothing is written. It sets
// Row.Seq. After
// a *WriteError the same call may be repeated; an invalid row is an error of the caller. The end of ctx does not
// interrupt a commit that has begun.
func (j *Journal) Append(ctx context.Context, batches []Batch) (Appended, error) {
	return j.AppendThen(ctx, batches, func() {})
}

// AppendThen is Append that calls then after the commit, before readers learn of it: Last and Changed wait meanwhile. It must
// not call the journal.
func (j *Journal) AppendThen(ctx context.Context, batches []Batch, then func()) (Appended, error) {
	for i := range batches {
		for k := range batches[i].Rows {
			if err := batches[i].Rows[k].check(); err != nil {
				return Appended{}, fmt.Errorf("append to journal: %w", err)
			}
		}
	}
	w := writer{}
	err := j.do(ctx, "append", func() error {
		if err := j.secure(); err != nil {
			return err
		}
		if err := j.boundLog(); err != nil {
			return err
		}
		w = writer{db: j.db, names: &j.names, codec: j.codec, cluster: j.cluster, tail: j.tail.clone(), reread: j.reread, stories: &j.stories, dirty: map[int64]story.Story{}}
		if err := j.db.transaction(func() error { return w.all(batches) }); err != nil {
			j.names.forget() //  the transaction may have made some of them
			j.stories = follower{}
			return err
		}
		j.tail, j.full, j.reread = w.tail, false, false
		w.done.Last = w.tail.next() - 1
		then()
		if w.done.Rows > 0 {
			close(j.changed)
			j.changed = make(chan struct{})
		}
		return nil
	})
	if err != nil {
		return Appended{}, err
	}
	return w.done, nil
}

// writer is one transaction of Append.
type writer struct {
	db      *db
	names   *names
	codec   *codec
	cluster string
	tail    block
	reread  bool // retention changed the tail
	done    Appended
	stories *follower
	dirty   map[int64]story.Story // by their numbers
}

func (w *writer) all(batches []Batch) error {
	if w.reread {
		var err error
		if w.tail, err = w.db.tail(); err != nil {
			return err
		}
	}
	for i := range batches {
		if err := w.batch(&batches[i]); err != nil {
			return err
		}
	}
	if w.done.Rows == 0 {
		return nil
	}
	if err := w.saveStories(); err != nil {
		return err
	}
	return w.db.saveBlock(&w.tail)
}

// end removes a stream, unless an object that could not be read is left: then it waits to be forgotten.
func (w *writer) end(s Stream) error {
	resource, err := w.db.resourceID(s.Cluster, s.GroupResource)
	if err != nil {
		return err
	}
	return w.db.exec(`DELETE FROM streams WHERE resource = ? AND namespace = ? AND selection = ?
		AND NOT EXISTS (SELECT 1 FROM live WHERE stream = streams.id)`, resource, s.Namespace, s.Selection)
}

func (w *writer) batch(b *Batch) error {
	var stream int64
	if b.Ended {
		return w.end(b.Stream)
	}
	if b.Stream != (Stream{}) {
		resource, err := w.names.resource(b.Stream.Cluster, b.Stream.GroupResource)
		if err != nil {
			return err
		}
		if stream, err = w.db.setHead(resource, b.Stream, b.Head); err != nil {
			return err
		}
		if err := w.names.setShortNames(resource, b.ShortNames); err != nil {
			return err
		}
	}
	for k, schema := range b.Schemas {
		kind, err := w.names.kindID(k)
		if err != nil {
			return err
		}
		if err := w.setSchema(kind, schema, w.tail.next()); err != nil {
			return err
		}
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		r.Seq = 0
		kind, err := w.names.kindID(r.Kind)
		if err != nil {
			return err
		}
		switch {
		case r.Rewritten:
			err = w.rewrite(stream, r)
		case r.Op == event.Gap:
			err = w.gap(kind, r)
		case r.Op == event.Absent:
			err = w.absence(kind, r)
		default:
			err = w.change(stream, kind, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const knownGap = `SELECT 1 FROM gaps g JOIN changes c ON c.seq = g.seq JOIN kinds k ON k.id = c.kind
	WHERE g."from" = ?1 AND g."to" = ?2 AND c.namespace = ?3 AND k.resource = ?4 AND c.epoch IS ?5
	AND (g."to" <> '' OR c.time + c.lag - c.since IS ?6)`

func (w *writer) gap(kind int64, r *Row) error {
	seq := w.tail.next()
	ns, err := w.names.namespace(r.Kind.Cluster, r.Namespace, seq)
	if err != nil {
		return err
	}
	resource, err := w.names.resource(r.Kind.Cluster, r.Kind.GroupResource())
	if err != nil {
		return err
	}
	known, err := w.db.integer(knownGap, r.Gap.From, r.Gap.To, ns, resource, epochValue(r.Epoch), sinceValue(r.Since))
	if err != nil || known != 0 {
		w.done.Duplicates += int(known)
		return err
	}
	if err := w.db.exec("INSERT INTO gaps VALUES (?, ?, ?, ?)", seq, r.Gap.From, r.Gap.To, r.Gap.Reason); err != nil {
		return err
	}
	return w.insert(r, kind, nil, nil)
}

// change writes a change of an object and its new state. A duplicate writes no change, but still sets the state: a
// server whose history was replaced can serve a version again.
func (w *writer) change(stream, kind int64, r *Row) error {
	o, err := w.object(r)
	if err != nil {
		return err
	}
	duplicate, err := w.known(o, r)
	if err != nil {
		return err
	}
	if duplicate {
		w.done.Duplicates++
	}
	// The newest change's after is this one's before, unless that is something else.
	base := r.Before
	if duplicate {
		base = r.After
	}
	if o.head != nil && o.last > 0 && !(len(base) > 0 && matches(o.head, base)) {
		if err := w.pin(o, nil); err != nil {
			return err
		}
	}
	if !duplicate {
		if err := w.insertChange(o, kind, r); err != nil {
			return err
		}
		if err := w.follow(o.id, r); err != nil {
			return err
		}
	}
	return w.setState(o, stream, r)
}

func (w *writer) insertChange(o *object, kind int64, r *Row) error {
	var before, after []byte
	o.chain++
	if len(r.Before) > 0 && leaves(r.Op) {
		before = w.codec.diff(r.Before, r.After)
	} else if len(r.Before) > 0 {
		before = w.codec.whole(r.Before)
	}
	if !leaves(r.Op) {
		o.chain = 0
	} else if o.chain >= wholeEvery {
		after, o.chain = w.codec.whole(r.After), 0
	}
	var owner any // NULL: as the object's
	if text := ownerText(r.Owner); text != o.owner {
		owner = text
	}
	o.last = w.tail.next()
	if err := w.insert(r, kind, o.id, owner); err != nil || before == nil && after == nil {
		return err
	}
	return w.db.exec("INSERT INTO contents VALUES (?, ?, ?)", r.Seq, before, after)
}

func (w *writer) insert(r *Row, kind int64, object, owner any) error {
	if w.tail.full() {
		if err := w.db.saveBlock(&w.tail); err != nil {
			return err
		}
		w.tail = newBlock(w.tail.next(), w.tail.reached)
	}
	var manager, since any
	n := noted{kind: kind, op: opNumber(r.Op), quiet: r.Quiet, severity: severityOf(&r.Meta)}
	var err error
	if n.namespace, err = w.names.namespace(r.Kind.Cluster, r.Namespace, w.tail.next()); err != nil {
		return err
	}
	if r.Manager != "" {
		if n.manager, err = w.names.manager(r.Manager, w.tail.next()); err != nil {
			return err
		}
		manager = n.manager
	}
	c := timesOf(&r.Meta)
	n.from, n.time, n.lag = c.time, c.time, c.lag
	if c.bounded {
		since = c.since
		n.from, _ = c.span()
	}
	r.Seq = w.tail.next()
	err = w.db.exec("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		r.Seq, object, kind, n.namespace, n.op, r.Quiet, r.Routine, n.severity, versionValue(r.ResourceVersion), c.time, c.lag, since, manager, owner, epochValue(r.Epoch), sumValue(r.Form))
	if err != nil {
		return err
	}
	n.id = r.Meta.ID(w.cluster)
	w.tail.add(n)
	w.done.Rows++
	if r.Quiet {
		w.done.Quiet++
	}
	return nil
}

// object returns the object of a change, and creates it if the journal does not have it.
func (w *writer) object(r *Row) (*object, error) {
	o, resource, err := w.find(r)
	if err != nil || o.id != 0 {
		return o, err
	}
	ns, err := w.names.namespace(r.Kind.Cluster, r.Namespace, w.tail.next())
	if err != nil {
		return nil, err
	}
	o.owner = ownerText(r.Owner)
	err = w.db.exec("INSERT INTO objects (resource, uid, namespace, name, owner, created) VALUES (?, ?, ?, ?, ?, ?)",
		resource, uidKey(&r.Meta), ns, r.Name, o.owner, createdOf(r).UnixMilli())
	o.id = w.db.c.LastInsertRowID()
	return o, err
}

// find returns the object of a change, with id 0 if the journal does not have it, and the number of its resource.
func (w *writer) find(r *Row) (o *object, resource int64, err error) {
	if resource, err = w.names.resource(r.Kind.Cluster, r.Kind.GroupResource()); err != nil {
		return nil, 0, err
	}
	o = &object{}
	err = w.db.query(`SELECT o.id, o.owner, l.stream, l.max_version, l.last, l.chain, l.content FROM objects o LEFT JOIN live l ON l.object = o.id
		WHERE o.resource = ? AND o.uid = ?`, []any{resource, uidKey(&r.Meta)}, func(s *sqlite3.Stmt) error {
		o.id, o.owner, o.stream, o.maxVersion = s.ColumnInt64(0), s.ColumnText(1), s.ColumnInt64(2), s.ColumnText(3)
		o.last, o.chain, o.head = s.ColumnInt64(4), s.ColumnInt(5), headOf(s, 6)
		return nil
	})
	if err == nil && o.id != 0 && o.head == nil {
		err = w.ended(o)
	}
	return o, resource, err
}

// ended finds of an object that is not live what the row of a live one would say.
func (w *writer) ended(o *object) (err error) {
	if o.last, err = w.db.integer("SELECT max(seq) FROM changes WHERE object = ?", o.id); err != nil {
		return err
	}
	return w.db.query("SELECT version FROM changes WHERE object = ? ORDER BY length(version) DESC, version DESC LIMIT 1", []any{o.id}, func(s *sqlite3.Stmt) error {
		o.maxVersion = s.ColumnText(0)
		return nil
	})
}

// known reports whether the journal has a change with this id (see package event). An object that is gone, or back, is
// news even if it was gone or had this version before: a kind was not served for a while, or a list lacked an object. Then
// known sets the row's Form, so that its id is another one.
func (w *writer) known(o *object, r *Row) (bool, error) {
	if r.Op != event.Converted {
		r.Form = 0
	}
	if o.last == 0 {
		return false, nil
	}
	unversioned := r.Op == event.Deleted && r.UID != "" // its id has no version
	if c, ok := compareVersions(r.ResourceVersion, o.maxVersion); ok && c > 0 && !unversioned {
		return false, nil // newer than any before: the usual case, without a query
	}
	where := "FROM changes WHERE object = ?1 AND epoch IS ?2 AND (?3 OR version = ?4) AND " + sameID(r.Op)
	args := []any{o.id, epochValue(r.Epoch), unversioned, versionValue(r.ResourceVersion)}
	if r.Op == event.Converted {
		n, err := w.db.integer("SELECT 1 "+where+" AND form = ?5", append(args, sumValue(r.Form))...)
		return n != 0, err
	}
	next, err := w.db.integer("SELECT coalesce(max(coalesce(form, 0)) + 1, 0) "+where, args...)
	if err != nil || next == 0 {
		return false, err
	}
	last, err := w.db.integer("SELECT op FROM changes WHERE seq = ?", o.last)
	if err != nil || leaves(opOf(int(last))) == leaves(r.Op) {
		return true, err
	}
	r.Form = uint64(next) //nolint:gosec // it is small
	return false, nil
}

// sameID is a condition for the changes whose ids do not differ by their operations.
func sameID(op event.Op) string {
	states := []event.Op{event.Snapshot, event.Created, event.Updated, event.Entered}
	if !slices.Contains(states, op) {
		return fmt.Sprintf("op = %d", opNumber(op))
	}
	var numbers []string
	for _, s := range states {
		numbers = append(numbers, strconv.Itoa(opNumber(s)))
	}
	return "op IN (" + strings.Join(numbers, ", ") + ")"
}

// rewrite replaces the object's state by other bytes of the same version. The newest change's after becomes a delta
// from them.
func (w *writer) rewrite(stream int64, r *Row) error {
	o, _, err := w.find(r)
	if err != nil || o.head == nil { // the journal has no state to rewrite
		return err
	}
	if o.last > 0 && !matches(o.head, r.After) {
		if err := w.pin(o, r.After); err != nil {
			return err
		}
	}
	return w.setState(o, stream, r)
}

// pin stores the newest change's after before the state is replaced by something that the next change does not lead
// back from: whole, or as a delta from the next state. See Stored rows in the package comment.
func (w *writer) pin(o *object, next []byte) error {
	_, after, _, err := w.db.contents(w.codec, o.id, o.last)
	var d *DamagedError
	content := lost()
	switch {
	case err != nil && !errors.As(err, &d):
		return err
	case err == nil && next != nil:
		content = w.codec.diff(after, next)
	case err == nil:
		content = w.codec.whole(after)
	}
	if next == nil {
		o.chain = 0
	}
	return w.db.setAfter(o.last, content)
}

// setState writes the row of a live object, or removes it.
func (w *writer) setState(o *object, stream int64, r *Row) error {
	if o.stream != 0 && o.stream != stream { // it no longer has all of its objects
		if err := w.db.exec("UPDATE streams SET version = '', live = 0, ever_live = 0 WHERE id = ?", o.stream); err != nil {
			return err
		}
	}
	if !leaves(r.Op) {
		return w.db.exec("DELETE FROM live WHERE object = ?", o.id)
	}
	if c, ok := compareVersions(r.ResourceVersion, o.maxVersion); o.maxVersion == "" || ok && c > 0 {
		o.maxVersion = r.ResourceVersion
	}
	row := []any{versionValue(r.ResourceVersion), versionValue(o.maxVersion), o.last, o.chain, sumValue(r.Sum), w.codec.state(r.After), o.id}
	if o.head != nil && o.stream == stream { // nearly always; the index of streams is not touched
		return w.db.exec("UPDATE live SET version = ?, max_version = ?, last = ?, chain = ?, sum = ?, content = ? WHERE object = ?", row...)
	}
	return w.db.exec("INSERT OR REPLACE INTO live (version, max_version, last, chain, sum, content, object, stream) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", append(row, stream)...)
}
