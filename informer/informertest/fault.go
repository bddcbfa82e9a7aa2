package informertest

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault is one way to misbehave: the requests that it affects, its effect, and its duration.
//
//	{On: Lists, Code: 429, RetryAfter: time.Second, Times: 2}  the next two lists are refused
//	{On: StreamingLists, Code: 422}                            a server without streaming lists
//	{Protobuf: true, Code: 406}                                an aggregated API server without protobuf
//	{On: Watches, Effect: CutFrame, Times: 1}                  the next event is cut in half
type Fault struct {
	// The affected requests.
	On       Requests                    // zero: all of them
	Resource schema.GroupVersionResource // zero: any kind
	Protobuf bool                        // only those answered in protobuf

	Effect     Effect
	Code       int           // for Reject and ErrorEvent: an HTTP status
	RetryAfter time.Duration // for Reject and ErrorEvent: sent in whole seconds, if not zero
	Changes    int           // for ChangesBeforeEnd: the number of changes; zero: the whole history

	// Name and Version, if set, limit an effect on frames to watch events about objects of this name, or to
	// those of this resource version: then every watch, also a later one, gets the same frame spoiled, as if
	// the cause were in the stored object.
	Name, Version string

	// Times is the number of affected requests, or of affected frames if the effect is on a frame. Zero: until
	// the fault is ended.
	Times int
}

// Requests is a set of requests. Each request belongs to exactly one class.
type Requests uint8

// The classes of requests.
const (
	Gets           Requests = 1 << iota // for one object
	Lists                               // for one page
	Watches                             // except streaming lists
	StreamingLists                      // watches with sendInitialEvents=true
	Discovery
	Writes // creates, updates, patches and deletions
)

// Effect is the effect of a Fault. A frame is a watch event, or the body of a list or get.
type Effect uint8

// The effects.
const (
	// Reject answers with Code. 429 is sent as by an overloaded API server, without a Status.
	Reject Effect = iota
	// Hang sends nothing, not even a status.
	Hang
	// CutFrame ends the connection after half of a frame.
	CutFrame
	// GarbleFrame replaces a frame by noise: a whole event, after its length in protobuf, or the second half of
	// a body.
	GarbleFrame
	// GarbleObject replaces a watch event's object by noise, but leaves its metadata readable.
	GarbleObject
	// ErrorEvent ends a watch, also an open one, with an ERROR event of Code; zero means 410.
	ErrorEvent
	// IgnoreStreaming answers a streaming list like a server that does not know its parameters: with the
	// objects and a watch, but without the bookmark that ends the list.
	IgnoreStreaming
	// NoEndBookmark omits the bookmark that ends the initial events of a streaming list. Other bookmarks are
	// sent.
	NoEndBookmark
	// ChangesBeforeEnd makes a streaming list begin with the state before the kind's last Changes changes, and
	// send those before the bookmark, as from a watch cache that lags behind.
	ChangesBeforeEnd
	// GzipMembers compresses bodies, if the client accepts that, with one gzip member per flush, as Kubernetes
	// 1.37 compresses streaming lists.
	GzipMembers
)

// Misbehave adds a fault and returns the function that ends it. If several faults with the same effect affect a
// request, the first one applies.
func (s *Server) Misbehave(f Fault) (end func()) {
	frames := f.Effect == CutFrame || f.Effect == GarbleFrame || f.Effect == GarbleObject
	if f.Effect == Reject && f.Code < 400 || f.Effect != Reject && f.Effect != ErrorEvent && f.Code != 0 ||
		!frames && (f.Name != "" || f.Version != "") {
		panic(fmt.Sprintf("informertest: invalid fault: %+v", f))
	}
	defer s.lock()()
	s.faults = append(s.faults, &f)
	return func() {
		defer s.lock()()
		s.faults = slices.DeleteFunc(s.faults, func(o *Fault) bool { return o == &f })
	}
}

// fault returns the first fault with the effect that affects the request, and counts it; s.mu is held.
func (s *Server) fault(c *call, effect Effect) *Fault { return s.frameFault(c, effect, nil) }

// frameFault is fault for a frame: e is the event, or nil for any other frame.
func (s *Server) frameFault(c *call, effect Effect, e *event) *Fault {
	for i, f := range s.faults {
		if f.Effect != effect || !f.concerns(e) || f.On != 0 && f.On&c.class == 0 || f.Protobuf && !c.media.protobuf ||
			f.Resource != (schema.GroupVersionResource{}) && f.Resource != c.at.gvr {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
		}
		return f
	}
	return nil
}

// concerns reports whether a fault affects an event.
func (f *Fault) concerns(e *event) bool {
	if f.Name == "" && f.Version == "" && f.Effect != GarbleObject {
		return true
	}
	return e != nil && e.about != nil && (f.Name == "" || f.Name == e.about.name) && (f.Version == "" || f.Version == formatVersion(e.rv))
}

// seconds returns the value of Retry-After; 0: none.
func (f *Fault) seconds() int { return int(math.Ceil(f.RetryAfter.Seconds())) }

// hit is fault for callers that do not hold s.mu.
func (c *call) hit(effect Effect) *Fault {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.fault(c, effect)
}

// frameFault returns the effect on the next frame, which is an event or, if e is nil, another frame: CutFrame,
// GarbleFrame, GarbleObject, or 0.
func (c *call) frameFault(e *event) Effect {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, effect := range []Effect{CutFrame, GarbleFrame, GarbleObject} {
		if c.s.frameFault(c, effect, e) != nil {
			return effect
		}
	}
	return 0
}

// garbled returns the object of an event with readable metadata that every decoder of its kind refuses: JSON
// with a second metadata of another type, or a message with trailing noise.
func (o *watcher) garbled(e *event) []byte {
	whole := e.about.at(o.kind, e.rv)
	if !o.media.protobuf {
		b := o.media.object(nil, o.kind, whole)
		return append(bytes.TrimSuffix(b, []byte("}")), `,"metadata":7}`...)
	}
	_, _, end := protowire.ConsumeField(o.media.message(o.kind, whole))
	message := append(slices.Clone(o.media.message(o.kind, whole)[:end]), bytes.Repeat([]byte{0xff}, 16)...)
	apiVersion, kind := o.media.names(o.kind)
	return enveloped(nil, apiVersion, kind, message)
}

// spoil applies an effect to a frame. A garbled frame keeps its first bytes, and a line its end.
func (c *call) spoil(e Effect, frame []byte, first int) []byte {
	switch last := len(frame); e {
	case CutFrame:
		return frame[:last/2]
	case GarbleFrame:
		if !c.media.protobuf {
			last--
		}
		noise := bytes.Repeat([]byte{0xff}, last-first) // neither JSON nor protobuf
		return slices.Concat(frame[:first], noise, frame[last:])
	}
	return frame
}

// hang waits until the client cancels or the connection breaks, without sending anything.
func (c *call) hang() {
	for {
		c.s.mu.Lock()
		broken, changed := c.broken(), c.s.changed
		c.s.mu.Unlock()
		if broken || c.r.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-changed:
		case <-c.r.Context().Done():
		}
	}
}
