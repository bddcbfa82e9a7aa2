package clientgo

import (
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// What the server says, as a reflector.Sink: it means what client-go's Reflector would make of it. A list is
// told as a whole, once it is complete; versions are not judged.

var _ reflector.Sink = (*rawSource)(nil)

// Begin implements reflector.Sink. In another history of the server, versions start anew.
func (r *rawSource) Begin(newEpoch bool) {
	r.listed, r.places = nil, map[string]int{}
	if newEpoch {
		r.version.Store(new(string))
	}
}

// Item implements reflector.Sink.
func (r *rawSource) Item(o wire.Object) error {
	defer utilruntime.HandleCrashWithContext(r.ctx)
	if c, ok := r.known(o); ok {
		r.name(c)
		return nil
	}
	c, err := r.receive(o)
	if err != nil {
		r.skip(o.Meta, err)
		return nil
	}
	r.name(c)
	return nil
}

// name notes an object of a list; a streaming one may name it again.
func (r *rawSource) name(c change) {
	if i, ok := r.places[c.key]; ok {
		r.listed[i] = c
		return
	}
	r.places[c.key] = len(r.listed)
	r.listed = append(r.listed, c)
}

// known returns what is stored of an object in this very version. Within one server's history, UID and
// version say what it is.
func (r *rawSource) known(o wire.Object) (change, bool) {
	if o.UID == "" || o.ResourceVersion == "" || r.transform != nil {
		return change{}, false
	}
	key := rawKey(o.Meta)
	it := r.table.item(key)
	if it == nil || it.uid() != o.UID {
		return change{}, false
	}
	v, _ := it.version()
	return change{key: key, item: it}, v == o.ResourceVersion
}

// skip notes an object that cannot be taken: what is stored of it stays.
func (r *rawSource) skip(m wire.Meta, err error) {
	r.onError(r.ctx, r.stand, fmt.Errorf("read object %s: %w", rawKey(m), err))
	if it := r.table.item(rawKey(m)); it != nil && m.Name != "" {
		r.name(change{key: rawKey(m), item: it})
	}
}

// Gone implements reflector.Sink.
func (r *rawSource) Gone(o wire.Object) {
	key := rawKey(o.Meta)
	i, ok := r.places[key]
	if !ok {
		return
	}
	last := len(r.listed) - 1
	r.listed[i] = r.listed[last]
	r.places[r.listed[i].key] = i
	r.listed = r.listed[:last]
	delete(r.places, key)
}

// Unreadable implements reflector.Sink.
func (r *rawSource) Unreadable(m wire.Meta, err error) { r.skip(m, err) }

// Page implements reflector.Sink.
func (r *rawSource) Page(string) error { return nil }

// Live implements reflector.Sink.
func (r *rawSource) Live(version string) {
	defer utilruntime.HandleCrashWithContext(r.ctx)
	changes := r.listed
	r.listed, r.places = nil, nil
	r.replace(changes, version)
	r.version.Store(&version)
}

// Event implements reflector.Sink.
func (r *rawSource) Event(ev wire.Event) error {
	defer utilruntime.HandleCrashWithContext(r.ctx)
	c, err := r.receive(ev.Object)
	switch {
	case err != nil && ev.Type == wire.Deleted: // what was known of it is its last state
		r.miss(c.key)
	case err != nil:
		r.onError(r.ctx, r.stand, fmt.Errorf("read object %s: %w", c.key, err))
	case ev.Type == wire.Deleted:
		r.dropRaw(c)
	default:
		r.put(c)
	}
	r.version.Store(&ev.ResourceVersion)
	return nil
}

// dropRaw deletes an object with the server's last word on it, or what was known of it before.
func (r *rawSource) dropRaw(c change) {
	if c.obj == nil {
		c.obj = c.item.decode()
	}
	if c.obj == nil {
		r.miss(c.key)
		return
	}
	r.drop(c.key, c.obj)
}

// Bookmark implements reflector.Sink.
func (r *rawSource) Bookmark(version string) error {
	r.bookmark(version)
	r.version.Store(&version)
	return nil
}

// CaughtUp implements reflector.Sink: nothing is ever loaded.
func (r *rawSource) CaughtUp(string) error { return nil }

// Settle implements reflector.Sink.
func (r *rawSource) Settle() error { return nil }

// Current implements reflector.Sink.
func (r *rawSource) Current() {}

// Missed implements reflector.Sink.
func (r *rawSource) Missed(string, bool) {}

// Version implements reflector.Sink.
func (r *rawSource) Version() string { return r.LastSyncResourceVersion() }

// Report implements reflector.Sink: each failure is told once.
func (r *rawSource) Report(m reflector.Machine) {
	before := r.told
	r.told = m
	if m.Err == nil || m.Attempts == before.Attempts && before.Err != nil {
		return
	}
	err := m.Err
	if m.State == reflector.Listing || !m.Synced {
		err = fmt.Errorf("failed to list %T: %w", r.example, err)
	}
	r.onError(r.ctx, r.stand, err)
}
