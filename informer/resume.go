package informer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A version that is not behind ours proves little: a server that was restored from a backup may have overtaken it. So
// after every failure the three objects with the highest versions are requested. An older one proves another history.
// A missing one must be deleted by the watch before it reaches the server's version, or the history is another.
// Without the right to get objects, only versions are compared.

// A verified state is resumed like any other stream: its batches have phase Resuming and a version, and a process
// that is killed meanwhile resumes from there. Only while the deletion of the newest object is still expected, the
// stream holds back what the watch delivers; see hold.go.

const restoreRetry = 2 * time.Second

// resume loads a stream's state of an earlier run, verifies that it belongs to the server's history, and checks the
// history again after failures. Only the reflector's goroutine uses it.
type resume struct {
	*stream
	identity   string         // the cluster's in the loaded state; empty: not known
	loaded     objectVersion  // the newest loaded object; without a name: no objects
	unverified bool           // the loaded state is not verified yet
	expect     *objectVersion // the watch must deliver its deletion before the loaded state counts as caught up

	newest  newestObjects
	missing []objectVersion // newest objects that the server lacked at the last history check
}

// from loads the state of an earlier run, if there is one, and reports whether the stream may be resumed from it.
func (r *resume) from(ctx context.Context, file *checkpoint.Stream) bool {
	switch {
	case r.source.restore != nil:
		return r.restore(ctx)
	case file != nil:
		return r.load(file)
	}
	return false
}

// restore loads the state that a consumer persisted. Without it nothing else can be done, so restore retries failures.
func (r *resume) restore(ctx context.Context) bool {
	m := reflector.Machine{State: reflector.Waiting}
	for {
		st, err := r.source.restore(ctx, r.id.Namespace, r.pack)
		switch {
		case err == nil && st == nil:
			return false
		case err == nil:
			return r.begin(st)
		}
		m.Err = fmt.Errorf("restore: %w", err)
		m.Attempts++
		r.Report(m)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(restoreRetry):
		}
	}
}

// pack implements raw.Pack.
func (r *resume) pack(uid, resourceVersion string, sum uint64, json []byte) *compact.Version {
	return r.ingest.packer.PackSummed(wire.JSON, uid, resourceVersion, sum, json)
}

// load loads the state of a checkpoint. A state with another fingerprint is ignored: its objects would be served in
// another form.
func (r *resume) load(file *checkpoint.Stream) bool {
	st, err := file.Load(r.source.fingerprint())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		r.setCheckpointErr(err) // until a new one is written
		return false
	case !st.Trusted:
		return false
	}
	for d, f := range st.Dicts() {
		r.source.router.Adopt(f, d)
	}
	return r.begin(st)
}

// begin fills the empty store, and reports whether the stream may be resumed from the state.
func (r *resume) begin(st *checkpoint.State) bool {
	r.identity = st.Identity
	if it, ok := st.Newest(); ok {
		r.loaded = objectVersion{it.Key, it.V.UID(), it.V.RV()}
		r.newest.add(r.loaded)
	}
	st.Head.At = st.Saved
	if st.Head.Epoch == 0 {
		st.Head.Epoch = r.source.cluster.histories.epoch(r.storage)
	}
	r.unverified = st.Trusted && st.Head.Phase == store.Live && st.Head.Version != ""
	// A state that cannot be resumed is never verified, so the list must not rely on its versions.
	r.store.Load(st.Items, st.Head, r.unverified)
	if c := r.source.cluster; c.histories.reach(r.storage, st.Head.Epoch) {
		c.interruptOutdated()
	}
	r.update(func(now *Status) { now.Loaded, now.LastCurrent = true, st.Saved })
	r.source.notify()
	return r.unverified
}

// reset ends all checks, because a list begins or the objects are gone. It reports whether a loaded state was still
// unverified.
func (r *resume) reset() (unverified bool) {
	unverified = r.expect != nil || r.unverified
	r.expect, r.unverified, r.newest, r.missing = nil, false, nil, nil
	return unverified
}

// verify implements reflector.Reflector.Verify. The server must have the newest loaded object at its version or a later
// one; if it lacks the object, the watch must deliver its deletion before the state counts as current.
func (r *resume) verify(ctx context.Context) (pending bool, err error) {
	id, err := r.source.cluster.Identity(ctx)
	if err != nil {
		return false, err
	}
	if r.identity != "" && id != "" && r.identity != id || r.outdated() {
		return false, reflector.ErrReplaced
	}
	r.expect = nil
	r.ingest.discardHeld() // of an earlier attempt, which is repeated
	if r.loaded.key.Name != "" {
		gone, err := r.compare(ctx, r.loaded)
		if err != nil {
			return false, err
		}
		if gone {
			r.expect = &r.loaded
		}
	}
	r.unverified = false
	if r.expect != nil {
		r.ingest.holding = true
		return true, nil
	}
	r.store.Resume()
	return false, nil
}

// compare reads an object and reports whether the server lacks it, or has another one of the same name. ErrReplaced
// means that the name has an older version on the server, or another object has the version: within one history, a name's
// versions grow with every write, deletions included.
func (r *resume) compare(ctx context.Context, o objectVersion) (gone bool, err error) {
	raw, err := r.source.cluster.Get(ctx, request.Path(r.source.served(), o.key.Namespace, o.key.Name), nil)
	switch {
	case notFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	m, err := wire.ReadMeta(wire.JSON, raw)
	if err == nil && (wire.Older(m.ResourceVersion, o.rv) || m.ResourceVersion == o.rv && m.UID != o.uid) {
		err = reflector.ErrReplaced
	}
	return err == nil && m.UID != o.uid, err
}

// notFound reports whether an API server, and not a proxy before it, answered that an object does not exist.
func notFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// deleted notes a deletion, and reports whether it is the expected one, which verifies the loaded state.
func (r *resume) deleted(k store.Key, uid string) (verified bool) {
	r.newest.remove(k)
	if e := r.expect; e == nil || e.key != k || e.uid != uid {
		return false
	}
	r.expect = nil
	r.store.Resume()
	return true
}

// complete reports whether the loaded state is verified now that it has caught up. Another object of the same name is no
// proof of a deletion.
func (r *resume) complete() bool {
	complete := r.expect == nil
	r.expect = nil
	return complete
}

// checkHistory implements reflector.Reflector.CheckHistory.
func (r *resume) checkHistory(ctx context.Context) (pending bool, err error) {
	if r.missing = nil; r.outdated() {
		return false, reflector.ErrReplaced
	}
	for _, o := range slices.Backward(r.newest) {
		gone, err := r.compare(ctx, o)
		if errors.Is(err, reflector.ErrReplaced) {
			return false, err
		}
		if err != nil {
			break // forbidden, or no answer: the watch must show it
		}
		if gone {
			r.missing = append(r.missing, o)
		}
	}
	return len(r.missing) > 0, nil
}

// checked ends a history check: objects that the server lacked must be gone here as well by now.
func (r *resume) checked() error {
	missing := r.missing
	r.missing = nil
	for _, o := range missing {
		if v := r.store.Get(o.key); v != nil && v.UID() == o.uid {
			return reflector.ErrReplaced
		}
	}
	return nil
}

// objectVersion is an object as it was last seen.
type objectVersion struct {
	key     store.Key
	uid, rv string
}

// newestObjects are the objects with the highest versions, in ascending order. The history check reads them after a
// failure: another history lacks them or has older versions of them, even if its own version is not behind ours. It goes
// unnoticed only if it changed all of them again.
type newestObjects []objectVersion

// maxNewest limits the objects that a history check reads. A single one might be an object that changes all the time, in
// any history.
const maxNewest = 3

// add adds an object that is newer than all others.
func (n *newestObjects) add(o objectVersion) {
	n.remove(o.key)
	*n = append(*n, o)
	n.trim()
}

// listed adds an object of a list, which is not sorted by version.
func (n *newestObjects) listed(o objectVersion) {
	n.remove(o.key)
	at := len(*n)
	for at > 0 && wire.Older(o.rv, (*n)[at-1].rv) {
		at--
	}
	*n = slices.Insert(*n, at, o)
	n.trim()
}

func (n *newestObjects) remove(k store.Key) {
	*n = slices.DeleteFunc(*n, func(o objectVersion) bool { return o.key == k })
}

func (n *newestObjects) trim() {
	if extra := len(*n) - maxNewest; extra > 0 {
		*n = slices.Delete(*n, 0, extra)
	}
}
