package informer

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// An audit compares a stream's state with a list that is read beside the watch. A watch that never fails
// can still miss changes: the server's history was replaced and has overtaken our version, or one of us has
// a defect. The list has nothing but metadata: UID and version of each object must be what is stored. Where
// the kind is served in another form than when contents were compared last, the audit lists whole objects
// and replaces those that differ at the same version.

const (
	defaultAuditEvery = 6 * time.Hour
	// maxAuditEvery bounds the interval, so that no time overflows.
	maxAuditEvery = 10 * 365 * 24 * time.Hour
	// auditDelay is the wait after a resumption, an outage or a new form, at least: a server that comes back
	// has other things to do. auditSpacing is the time between two such audits of one stream.
	auditDelay   = 10 * time.Second
	auditSpacing = 10 * time.Minute
	// auditRetry is the wait after an audit that failed or could not decide.
	auditRetry = time.Minute
	// auditPatience is how long an audit waits for the watch to reach its list's version. Bookmarks come
	// every minute.
	auditPatience = 3 * time.Minute
)

var (
	errUndecided = errors.New("the watch did not reach the version of the list in time")
	errUnordered = errors.New("the server's resource versions have no order")
	errUnnamed   = errors.New("the list has an object without a name")
)

// auditing is what a stream knows of its audits. The stream's mu guards all but wake.
type auditing struct {
	wake  chan struct{} // holds a token where something of what follows, or the served form, has changed
	delay time.Duration // the stream's own auditDelay

	due     time.Time // when an audit is wanted after a resumption or an outage; zero: it is not
	regular time.Time // when the next one comes anyway
	again   time.Time // before that, none: there was one not long ago
	fails   int       // audits in a row that failed

	listed time.Time // when the last completed list began
	done   time.Time // when everything was compared last
}

// wakeAudits has every stream look whether an audit is due.
func (s *Source) wakeAudits() {
	for _, st := range s.streams {
		st.wakeAudit()
	}
}

func (s *stream) wakeAudit() {
	select {
	case s.auditing.wake <- struct{}{}:
	default:
	}
}

// wantAudit asks for an audit after a resumption or an outage.
func (s *stream) wantAudit() {
	s.mu.Lock()
	a := &s.auditing
	a.due = latest(time.Now().Add(a.delay), a.done.Add(auditSpacing))
	s.mu.Unlock()
	s.wakeAudit()
}

// compared notes that everything was compared with a list that began at a time.
func (s *stream) compared(listed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auditing.due, s.auditing.listed, s.auditing.done = time.Time{}, listed, time.Now()
}

// startAudits runs the stream's audits beside r until stop is called, which waits for them.
func (s *stream) startAudits(ctx context.Context, r *reflector.Reflector) (stop func()) {
	every := min(cmp.Or(s.source.cluster.opts.AuditEvery, defaultAuditEvery), maxAuditEvery)
	if every < 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.audits(ctx, every, r.Interrupt) })
	return func() {
		cancel()
		running.Wait()
	}
}

// audits runs the stream's audits until ctx ends.
func (s *stream) audits(ctx context.Context, every time.Duration, interrupt func(error)) {
	for {
		if !s.awaitAudit(ctx, every) {
			return
		}
		info, settled := s.audit(ctx)
		if errors.Is(info.Err, reflector.ErrMissed) {
			interrupt(info.Err)
		}
		s.mu.Lock()
		s.status.Audits++
		a := &s.auditing
		if a.fails++; info.Err == nil {
			a.due, a.done, a.fails = time.Time{}, time.Now(), 0
		}
		a.again, a.regular = time.Now().Add(jittered(min(auditRetry<<min(a.fails, 10), every))), time.Time{}
		a.again = latest(a.again, settled)
		if info.Err != nil {
			a.due = a.again // also where a list should follow: it says when it is complete
		}
		s.mu.Unlock()
		s.hooks().audit(info)
	}
}

// awaitAudit waits until an audit is due; it returns false when ctx ends.
func (s *stream) awaitAudit(ctx context.Context, every time.Duration) bool {
	for {
		at := s.nextAudit(every)
		wait := time.NewTimer(time.Until(at))
		select {
		case <-s.auditing.wake:
			wait.Stop()
		case <-wait.C:
			if st := s.Status(); st.Synced && st.State == Watching {
				return true
			}
		case <-ctx.Done():
			wait.Stop()
			return false
		}
	}
}

// nextAudit returns when an audit is due.
func (s *stream) nextAudit(every time.Duration) time.Time {
	reformed := s.reformed()
	s.mu.Lock()
	defer s.mu.Unlock()
	a, now := &s.auditing, time.Now()
	if a.regular.IsZero() {
		a.regular = now.Add(jittered(every))
	}
	at := a.regular
	if !a.due.IsZero() && a.due.Before(at) {
		at = a.due
	}
	if form := s.form(); reformed {
		at = latest(now, form.since.Add(a.delay))
	}
	if st := s.status; !st.Synced || st.State != Watching { // its next transition wakes us up
		return now.Add(every)
	}
	return latest(at, a.again)
}

// reformed reports whether the kind is served in another form than when contents were compared last. A
// form that was asked for before the last list began is that list's.
func (s *stream) reformed() bool {
	form := s.form()
	if s.store.Served() == 0 && form.sum != 0 {
		s.mu.Lock()
		listed := s.auditing.listed
		s.mu.Unlock()
		if !listed.IsZero() && !listed.Before(form.settled()) {
			s.store.Commit(store.Commit{Served: form.sum, At: time.Now()})
		}
	}
	return form.sum != 0 && form.sum != s.store.Served()
}

// form is the form in which the stream's kind is served now.
func (s *stream) form() form {
	return s.source.cluster.forms.of(s.source.served().GroupVersion())
}

// listForm is what a list that begins now leaves as the form in which the kind was served. While not all
// API servers may serve the new form, it stays the old one, so that an audit follows.
func (s *stream) listForm() uint64 {
	form := s.form()
	if time.Now().Before(form.settled()) {
		return s.store.Served()
	}
	return form.sum
}

// audit is one audit.
type audit struct {
	*stream
	AuditInfo
	lists   uint64 // of the stream, when it began
	from    string // the stream's version when it began
	version string // of the list: of its first page
	last    string // of its last page
	seed    maphash.Seed
	named   []uint64 // the hashes of the keys that the list has
	doubts  []doubtful
	staged  []store.Change
	bytes   int
}

// doubtful is an object in which the list and the store differ.
type doubtful struct {
	key     store.Key
	uid, rv string
	listed  bool // uid and rv are what the list says, else what is stored
}

// maxDoubts bounds how many are looked at more closely; one is enough.
const maxDoubts = 1000

// audit compares what is stored with a list. Where not all API servers may serve a new form yet, another one
// is due once they can be taken to.
func (s *stream) audit(ctx context.Context) (info AuditInfo, again time.Time) {
	began := time.Now()
	a := &audit{stream: s, lists: s.Status().Lists, from: s.store.Version(), seed: maphash.MakeSeed()}
	form := s.form()
	a.Stream, a.Contents = s.id, form.sum != 0 && form.sum != s.store.Served()
	if a.Err = a.read(ctx); a.Err == nil {
		a.lacking()
		a.Err = a.judge(ctx)
	}
	if a.Err == nil && a.Contents && !a.superseded() {
		if settled := form.settled(); began.Before(settled) {
			again = settled
		} else {
			s.store.Commit(store.Commit{Served: form.sum, At: time.Now()})
		}
	}
	a.Duration = time.Since(began)
	return a.AuditInfo, again
}

// compareLoaded implements reflector.Reflector.Compare.
func (s *stream) compareLoaded(ctx context.Context) (version string, same bool, err error) {
	if s.holding {
		return "", false, nil // the watch has yet to deliver a deletion
	}
	began := time.Now()
	a := &audit{stream: s, AuditInfo: AuditInfo{Stream: s.id}, from: s.store.Version(), seed: maphash.MakeSeed()}
	if a.Err = a.read(ctx); a.Err == nil {
		a.lacking()
		ours := s.store.Version()
		if slices.ContainsFunc(a.doubts, func(d doubtful) bool { return d.listed && !wire.Older(ours, d.rv) }) {
			a.Err = reflector.ErrRewritten
		}
	}
	a.Duration = time.Since(began)
	s.update(func(st *Status) { st.Audits++ })
	s.hooks().audit(a.AuditInfo)
	return a.version, len(a.doubts) == 0, a.Err
}

// superseded reports whether the stream has begun a list since.
func (a *audit) superseded() bool { return a.Status().Lists != a.lists }

// read reads the list.
func (a *audit) read(ctx context.Context) error {
	lists := a.source.cluster.lists
	select {
	case lists <- struct{}{}:
		defer func() { <-lists }()
	case <-ctx.Done():
		return ctx.Err()
	}
	read, err := reflector.ReadList(ctx, a.open, a.query(), a.object)
	a.version, a.last, a.Bytes = read.First, read.Last, read.Bytes
	if err == nil {
		a.commit()
	}
	return err
}

// open asks for the list: in protobuf where metadata is enough, which every kind has unless its API server
// knows no protobuf at all; else as the stream does.
func (a *audit) open(ctx context.Context, _ bool, q url.Values) (io.ReadCloser, wire.Format, error) {
	path := request.Path(a.source.served(), a.id.Namespace, "")
	if a.Contents {
		return a.source.cluster.client.Open(ctx, path, q, a.whole())
	}
	return a.ask(ctx, path, q, request.Want{Protobuf: true, Metadata: true})
}

// whole asks for objects as the stream does.
func (a *audit) whole() request.Want {
	return request.Want{Protobuf: a.source.wants() == Protobuf, Metadata: a.source.opts.MetadataOnly}
}

// ask sends a request, and again for JSON where protobuf may be what the server refuses.
func (a *audit) ask(ctx context.Context, path string, q url.Values, want request.Want) (io.ReadCloser, wire.Format, error) {
	body, f, err := a.source.cluster.client.Open(ctx, path, q, want)
	if sure, maybe := refusesFormat(err); want.Protobuf && (sure || maybe) {
		want.Protobuf = false
		return a.source.cluster.client.Open(ctx, path, q, want)
	}
	return body, f, err
}

// object compares one object of the list with what is stored.
func (a *audit) object(o wire.Object, err error) error {
	k := store.Key{Namespace: o.Namespace, Name: o.Name}
	switch {
	case o.Name == "":
		return cmp.Or(err, errUnnamed)
	case !a.keep(k):
		return nil
	}
	a.Objects++
	a.named = append(a.named, maphash.Comparable(a.seed, k))
	v := a.store.Get(k)
	// What is newer here than the stream was when the audit began has changed since.
	ahead := wire.Older(o.ResourceVersion, v.RV()) && !wire.Older(a.from, v.RV())
	switch {
	case v.UID() != o.UID || wire.Older(v.RV(), o.ResourceVersion) || ahead:
		a.doubt(doubtful{k, o.UID, o.ResourceVersion, true})
	case err == nil && a.Contents:
		return a.compare(k, o)
	}
	return nil
}

// compare replaces what is stored where the list has another content of the same version.
func (a *audit) compare(k store.Key, o wire.Object) error {
	sum := a.sum(o)
	if !a.store.Reformed(k, store.Seen{UID: o.UID, RV: o.ResourceVersion, Format: o.Format, Sum: sum}) {
		return nil
	}
	raw, err := a.kept(o)
	if err != nil {
		return err
	}
	c := store.Change{Key: k, UID: o.UID, Reread: true}
	c.V = a.packer.PackSummed(o.Format, o.UID, o.ResourceVersion, sum, raw)
	a.derive(&c, raw)
	a.staged = append(a.staged, c)
	if a.bytes += c.V.Size(); len(a.staged) >= maxStaged || a.bytes >= maxStagedBytes {
		a.commit()
	}
	return nil
}

func (a *audit) commit() {
	if len(a.staged) == 0 {
		return
	}
	a.Reread += int64(len(a.staged))
	a.store.Commit(store.Commit{Changes: a.staged, At: time.Now()})
	a.unpin(a.staged)
	clear(a.staged)
	a.staged, a.bytes = a.staged[:0], 0
}

func (a *audit) doubt(d doubtful) {
	if len(a.doubts) < maxDoubts {
		a.doubts = append(a.doubts, d)
	}
}

// lacking doubts what is stored and not in the list, unless it is newer.
func (a *audit) lacking() {
	slices.Sort(a.named)
	for _, item := range a.store.Snapshot("") {
		if _, ok := slices.BinarySearch(a.named, maphash.Comparable(a.seed, item.Key)); !ok && !wire.Older(a.version, item.V.RV()) {
			a.doubt(doubtful{item.Key, item.V.UID(), item.V.RV(), false})
		}
	}
	a.named = nil
}

// judge waits until the watch has passed the version of the list's last page, and looks at the doubtful
// objects again: ErrMissed if one of them still is not what the server has.
func (a *audit) judge(ctx context.Context) error {
	if len(a.doubts) == 0 {
		return nil
	}
	if _, ordered := wire.CompareVersions(a.last, a.store.Version()); !ordered {
		return errUnordered
	}
	for began := time.Now(); wire.Older(a.store.Version(), a.last); {
		switch {
		case a.superseded():
			return nil
		case time.Since(began) > auditPatience:
			return errUndecided
		case !pause(ctx, time.Second):
			return ctx.Err()
		}
	}
	for _, d := range a.doubts {
		missed, err := a.missed(ctx, d)
		switch {
		case a.superseded():
			return nil
		case err != nil:
			return err
		case missed:
			return reflector.ErrMissed
		}
	}
	return nil
}

// missed reports whether the stream has missed what happened to an object, now that the watch has passed
// the list's version. What a list could not store either is not missed: it was counted, and left a gap,
// when the watch delivered it.
func (a *audit) missed(ctx context.Context, d doubtful) (bool, error) {
	v := a.store.Get(d.key)
	same := v != nil && v.UID() == d.uid
	switch {
	case !d.listed:
		return same && v.RV() == d.rv, nil // it was gone by then, and a UID does not come back
	case same && (v.RV() == d.rv || wire.Older(a.version, v.RV())):
		return false, nil
	}
	uid, storable, err := a.look(ctx, d.key)
	if same {
		return uid != d.uid || storable, err
	}
	// It was there by then, and is not stored: if it is still there it was there all the time.
	return uid == d.uid && storable, err
}

// look asks the server for an object of the stream's selection, as the stream does. It returns its UID,
// empty if there is none, and whether it can be stored.
func (a *audit) look(ctx context.Context, k store.Key) (uid string, storable bool, err error) {
	q := a.query()
	name := "metadata.name=" + k.Name
	if f := q.Get("fieldSelector"); f != "" {
		name += "," + f
	}
	q.Set("fieldSelector", name)
	path := request.Path(a.source.served(), k.Namespace, "")
	open := func(ctx context.Context, _ bool, q url.Values) (io.ReadCloser, wire.Format, error) {
		return a.ask(ctx, path, q, a.whole())
	}
	_, err = reflector.ReadList(ctx, open, q, func(o wire.Object, err error) error {
		if err == nil {
			_, err = a.kept(o)
		}
		uid, storable = o.UID, err == nil
		return nil
	})
	return uid, storable, err
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// jittered adds up to as much again, so that streams do not ask together.
func jittered(d time.Duration) time.Duration { return d + rand.N(d) }

// pause waits; it returns false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
