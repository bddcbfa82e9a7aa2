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
		if err := j.boundLog(); err != nil {
			return err
		}
		w = writer{db: j.db, names: &j.names, codec: j.codec, cluster: j.cluster, tail: j.tail.clone(), recount: j.recount}
		if err := j.db.transaction(func() error { return w.all(batches) }); err != nil {
			j.names.forget() //  the transaction may have made some of them
			return err
		}
		j.tail, j.full, j.recount = w.tail, false, false
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
	recount bool // the tail's counts are not up to date
	done    Appended
}

func (w *writer) all(batches []Batch) error {
	if w.recount {
		var err error
		if w.tail.counts, err = w.db.recount(w.tail.first, w.tail.next()); err != nil {
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
	return w.db.saveBlock(&w.tail)
}

func (w *writer) batch(b *Batch) error {
	var stream int64
	var err error
	if b.Ended { // an object that could not be read may be left: then the stream waits to be forgotten
		return w.db.exec(`DELETE FROM streams WHERE resource = ? AND namespace = ? AND selection = ?
			AND NOT EXISTS (SELECT 1 FROM objects WHERE stream = streams.id)`, b.Stream.resource(), b.Stream.Namespace, b.Stream.Selection)
	}
	if b.Stream != (Stream{}) {
		if stream, err = w.db.setHead(b.Stream, b.Head); err != nil {
			return err
		}
		if err := w.names.setShortNames(b.Stream.resource(), b.ShortNames); err != nil {
			return err
		}
	}
	for k, schema := range b.Schemas {
		kind, err := w.names.kindID(k)
		if err != nil {
			return err
		}
		if err := w.db.exec("UPDATE kinds SET schema = ? WHERE id = ?", w.codec.whole(schema), kind); err != nil {
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
	WHERE g."from" = ?1 AND g."to" = ?2 AND g.namespace = ?3 AND k.resource = ?4 AND c.epoch IS ?5
	AND (g."to" <> '' OR c.time + c.lag - c.since IS ?6)`

func (w *writer) gap(kind int64, r *Row) error {
	ns, err := w.names.id(r.Namespace)
	if err != nil {
		return err
	}
	resource, err := w.names.id(resourceOf(r.Kind))
	if err != nil {
		return err
	}
	known, err := w.db.integer(knownGap, r.Gap.From, r.Gap.To, ns, resource, epochValue(r.Epoch), sinceValue(r.Since))
	if err != nil || known != 0 {
		w.done.Duplicates += int(known)
		return err
	}
	seq := w.tail.next()
	if err := w.db.exec("INSERT INTO gaps VALUES (?, ?, ?, ?, ?)", seq, ns, r.Gap.From, r.Gap.To, r.Gap.Reason); err != nil {
		return err
	}
	return w.insert(r, kind, nil, nil, nil, nil)
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
	}
	return w.setState(o, stream, r, duplicate)
}

func (w *writer) insertChange(o *object, kind int64, r *Row) error {
	var before, after []byte
	o.chainLen++
	if len(r.Before) > 0 && leaves(r.Op) {
		before = w.codec.diff(r.Before, r.After)
	} else if len(r.Before) > 0 {
		before = w.codec.whole(r.Before)
	}
	if !leaves(r.Op) {
		o.chainLen = 0
	} else if o.chainLen >= wholeEvery {
		after, o.chainLen = w.codec.whole(r.After), 0
	}
	var owner any // NULL: as the object's
	if text := ownerText(r.Owner); text != o.owner {
		owner = text
	}
	o.last = w.tail.next()
	return w.insert(r, kind, o.id, owner, before, after)
}

func (w *writer) insert(r *Row, kind int64, object, owner any, before, after []byte) error {
	if w.tail.full() {
		if err := w.db.saveBlock(&w.tail); err != nil {
			return err
		}
		w.tail = newBlock(w.tail.next())
	}
	var manager, since any
	n := noted{kind: kind, op: opNumber(r.Op), quiet: r.Quiet}
	var err error
	if n.namespace, err = w.names.id(r.Namespace); err != nil {
		return err
	}
	if r.Manager != "" {
		if n.manager, err = w.names.id(r.Manager); err != nil {
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
	err = w.db.exec("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		r.Seq, object, kind, n.op, r.Quiet, versionValue(r.ResourceVersion), c.time, c.lag, since, manager, owner, before, after, epochValue(r.Epoch), sumValue(r.Form))
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
	ns, err := w.names.id(r.Namespace)
	if err != nil {
		return nil, err
	}
	o.owner = ownerText(r.Owner)
	err = w.db.exec("INSERT INTO objects (resource, uid, namespace, name, owner, last, chain_len) VALUES (?, ?, ?, ?, ?, 0, 0)",
		resource, uidKey(&r.Meta), ns, r.Name, o.owner)
	o.id = w.db.c.LastInsertRowID()
	return o, err
}

// find returns the object of a change, with id 0 if the journal does not have it, and the number of its resource.
func (w *writer) find(r *Row) (o *object, resource int64, err error) {
	if resource, err = w.names.id(resourceOf(r.Kind)); err != nil {
		return nil, 0, err
	}
	o = &object{}
	err = w.db.query("SELECT id, stream, version, max_version, owner, last, chain_len, content FROM objects WHERE resource = ? AND uid = ?",
		[]any{resource, uidKey(&r.Meta)}, func(s *sqlite3.Stmt) error {
			o.id, o.stream, o.object.ResourceVersion, o.maxVersion = s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnText(2), s.ColumnText(3)
			o.owner, o.last, o.chainLen, o.head = s.ColumnText(4), s.ColumnInt64(5), s.ColumnInt(6), headOf(s, 7)
			return nil
		})
	return o, resource, err
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
	return w.setState(o, stream, r, true)
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
		o.chainLen = 0
	}
	return w.db.exec("UPDATE changes SET after = ? WHERE seq = ?", content, o.last)
}

func (w *writer) setState(o *object, stream int64, r *Row, duplicate bool) error {
	maxVersion := o.maxVersion
	if c, ok := compareVersions(r.ResourceVersion, o.maxVersion); !ok || c > 0 {
		maxVersion = r.ResourceVersion
	}
	if o.stream != 0 && o.stream != stream { // it no longer has all of its objects
		if err := w.db.exec("UPDATE streams SET version = '', live = 0, ever_live = 0 WHERE id = ?", o.stream); err != nil {
			return err
		}
	}
	version, sum := versionValue(r.ResourceVersion), sumValue(r.Sum)
	switch {
	case !leaves(r.Op):
		return w.db.exec("UPDATE objects SET stream = NULL, version = ?, max_version = ?, last = ?, chain_len = ?, content = NULL, sum = NULL WHERE id = ?",
			version, versionValue(maxVersion), o.last, o.chainLen, o.id)
	case duplicate && matches(o.head, r.After):
		return w.db.exec("UPDATE objects SET stream = ?, version = ?, max_version = ?, last = ?, chain_len = ?, sum = ? WHERE id = ?",
			stream, version, versionValue(maxVersion), o.last, o.chainLen, sum, o.id)
	case o.stream == stream: // nearly always; the index of streams is not touched
		return w.db.exec("UPDATE objects SET version = ?, max_version = ?, last = ?, chain_len = ?, content = ?, sum = ? WHERE id = ?",
			version, versionValue(maxVersion), o.last, o.chainLen, w.codec.state(r.After), sum, o.id)
	}
	return w.db.exec("UPDATE objects SET stream = ?, version = ?, max_version = ?, last = ?, chain_len = ?, content = ?, sum = ? WHERE id = ?",
		stream, version, versionValue(maxVersion), o.last, o.chainLen, w.codec.state(r.After), sum, o.id)
}
