package informer

import (
	"cmp"
	"context"
	"hash/maphash"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A watch that never fails may have missed something: after a restored backup has overtaken our version, nothing in a
// quiet kind shows it. So an audit compares UIDs and versions with a list of metadata after each resumption from
// disk, after an outage, and every few hours. A difference counts only once the watch has passed the list's version.
// Then the stream lists and compares contents, behind a gap with the reason "missed".
//
// An object whose last version the watch could not read is read again by the same audit. An object on which the
// transform failed is left alone. Neither needs a list.

// audit is one audit.
type audit struct {
	*ingest
	AuditInfo
	lists       uint64             // the stream's count of lists when the audit began
	from        string             // the stream's version when it began
	version     string             // of the list: of its first page
	last        string             // of the list: the newest of its pages
	unread      map[store.Key]bool // when it began
	other       bool               // objects are stored in the format that the list was not in
	seed        maphash.Seed
	named       []uint64 // hashes of the keys in the list
	differences []difference
	staged      []store.Change
	bytes       int
	refused     *store.Gap // versions that the transform refused in the new form
}

// difference is an object that differs between the list and the store.
type difference struct {
	key     store.Key
	uid, rv string
	listed  bool // uid and rv are from the list, otherwise from the store
}

// maxDifferences limits the differences that are confirmed; one is enough.
const maxDifferences = 1000

// audit compares the store with a list. If not all API servers may serve a new form yet, it returns when another audit of
// contents is due.
func (a *auditor) audit(ctx context.Context) (info AuditInfo, again time.Time) {
	began := time.Now()
	one := &audit{ingest: &a.ingest, lists: a.Status().Lists, from: a.store.Version(), seed: maphash.MakeSeed()}
	one.unread = a.store.AllUnread()
	form := a.form()
	one.Stream, one.Contents = a.id, form.sum != 0 && form.sum != a.store.Served() && a.mayCompare()
	if one.Err = one.read(ctx); one.Err == nil {
		one.missingFromList()
		one.Err = one.confirm(ctx)
	}
	if one.Err == nil && len(one.differences) < maxDifferences && !one.superseded() {
		a.mu.Lock()
		a.compared = latest(a.compared, began)
		a.mu.Unlock()
	}
	if one.Err == nil && one.Contents && !one.superseded() {
		if stable := form.stableAt(); began.Before(stable) {
			again = stable
		} else {
			a.store.Commit(store.Commit{Served: form.sum, At: time.Now()})
		}
	}
	one.Duration = time.Since(began)
	return one.AuditInfo, again
}

// compareLoaded implements reflector.Reflector.Compare.
func (a *auditor) compareLoaded(ctx context.Context) (version string, same bool, err error) {
	if a.ingest.holding {
		return "", false, nil // the watch must deliver a deletion first
	}
	began := time.Now()
	one := &audit{ingest: &a.ingest, AuditInfo: AuditInfo{Stream: a.id}, from: a.store.Version(), seed: maphash.MakeSeed()}
	if one.Err = one.read(ctx); one.Err == nil {
		one.missingFromList()
		ours := a.store.Version()
		unread := a.store.AllUnread() // an unreadable version is no sign of another history; an audit reads it again
		for _, d := range one.differences {
			if !d.listed || wire.Older(ours, d.rv) || unread[d.key] || unread[store.Key{}] {
				continue
			}
			one.Err = reflector.ErrMissed // by an earlier run
			if v := a.store.Get(d.key); v.UID() == d.uid && wire.Older(d.rv, v.RV()) {
				one.Err = reflector.ErrReplaced
				break
			}
		}
	}
	one.Duration = time.Since(began)
	a.update(func(st *Status) {
		st.Audits++
		if one.Err == nil && len(one.differences) == 0 {
			a.compared = began
		}
	})
	a.hooks().audit(one.AuditInfo)
	return one.version, len(one.differences) == 0, one.Err
}

// superseded reports whether the stream has begun a list since the audit began.
func (a *audit) superseded() bool { return a.Status().Lists != a.lists }

// read reads the list. If contents are compared and some objects are stored in the other format, it reads a second list
// in that format.
func (a *audit) read(ctx context.Context) error {
	lists := a.source.cluster.lists
	select {
	case lists <- struct{}{}:
		defer func() { <-lists }()
	case <-ctx.Done():
		return ctx.Err()
	}
	objects, _ := a.store.Stat()
	a.named = make([]uint64, 0, objects+objects/16) // growing the slice would leave several times as much garbage
	protobuf := !a.Contents || a.source.format() == Protobuf
	read, err := reflector.ReadList(ctx, a.opener(protobuf), a.query(), a.object)
	a.version, a.last, a.Bytes = read.First, read.Last, read.Bytes
	if err == nil && a.other {
		read, err = reflector.ReadList(ctx, a.opener(!protobuf), a.query(), func(o wire.Object, err error) error {
			if k := (store.Key{Namespace: o.Namespace, Name: o.Name}); err == nil && a.selects(k) {
				a.compare(k, o)
			}
			return nil
		})
		a.Bytes += read.Bytes
	}
	if err == nil {
		a.commit()
	}
	return err
}

// opener requests the list. Without contents, metadata is enough, and every kind has it in protobuf unless its API server
// does not support protobuf at all.
func (a *audit) opener(protobuf bool) reflector.Opener {
	return func(ctx context.Context, _ bool, q url.Values) (io.ReadCloser, wire.Format, error) {
		want := request.Want{Protobuf: protobuf, Metadata: !a.Contents || a.source.opts.MetadataOnly}
		client, path := a.source.cluster.client, request.Path(a.source.served(), a.id.Namespace, "")
		body, f, err := client.Open(ctx, path, q, want)
		if sure, maybe := refusesFormat(err); !a.Contents && (sure || maybe) {
			want.Protobuf = false
			return client.Open(ctx, path, q, want)
		}
		return body, f, err
	}
}

// object compares one object of the list with the stored one.
func (a *audit) object(o wire.Object, err error) error {
	k := store.Key{Namespace: o.Namespace, Name: o.Name}
	switch {
	case o.Name == "":
		return cmp.Or(err, errUnnamed)
	case !a.selects(k):
		return nil
	}
	a.Objects++
	a.named = append(a.named, maphash.Comparable(a.seed, k))
	v := a.store.Get(k)
	// A stored version newer than the stream's at the beginning of the audit is a change since then.
	ahead := wire.Older(o.ResourceVersion, v.RV()) && !wire.Older(a.from, v.RV())
	switch {
	case v.UID() != o.UID || wire.Older(v.RV(), o.ResourceVersion) || ahead || a.unread[k]:
		a.differs(difference{k, o.UID, o.ResourceVersion, true})
	case err == nil && a.Contents:
		a.other = a.other || v.Format() != o.Format
		a.compare(k, o)
	}
	return nil
}

// compare replaces a stored object if the list has other content at the same version.
func (a *audit) compare(k store.Key, o wire.Object) {
	sum := a.sum(o)
	if a.store.ServedDifferently(k, store.Seen{UID: o.UID, RV: o.ResourceVersion, Format: o.Format, Sum: sum}) {
		a.stage(k, o, sum)
	}
}

// stage stores an object as it was read, with the next commit.
func (a *audit) stage(k store.Key, o wire.Object, sum uint64) {
	c, err := a.change(k, o, sum)
	if err != nil { // the stored object stays, as after a list
		a.refused = a.refused.Merge(&store.Gap{From: a.from, Since: a.Status().LastCurrent, Reason: a.countDropped(err)})
		return
	}
	c.Reread = true
	a.staged = append(a.staged, c)
	if a.bytes += c.V.Size(); len(a.staged) >= maxStaged || a.bytes >= maxStagedBytes {
		a.commit()
	}
}

func (a *audit) commit() {
	c := store.Commit{Changes: a.staged, Gap: a.refused, At: time.Now()}
	if len(c.Changes) == 0 && c.Gap == nil {
		return
	}
	if a.refused = nil; c.Gap != nil {
		c.Gap.To, c.Gap.Until = a.store.Version(), c.At
		a.hooks().gap(a.id, *gapOf(c.Gap))
	}
	a.Reread += int64(len(a.staged))
	a.store.Commit(c)
	a.unpin(a.staged)
	clear(a.staged)
	a.staged, a.bytes = a.staged[:0], 0
}

func (a *audit) differs(d difference) {
	if len(a.differences) < maxDifferences {
		a.differences = append(a.differences, d)
	}
}

// missingFromList notes stored objects that the list lacks, unless they are newer.
func (a *audit) missingFromList() {
	slices.Sort(a.named)
	for _, namespace := range a.store.Namespaces() { // one at a time: a snapshot of all would be large
		for _, item := range a.store.Snapshot(namespace) {
			if _, ok := slices.BinarySearch(a.named, maphash.Comparable(a.seed, item.Key)); !ok && !wire.Older(a.version, item.V.RV()) {
				a.differs(difference{item.Key, item.V.UID(), item.V.RV(), false})
			}
		}
	}
	a.named = nil
}
