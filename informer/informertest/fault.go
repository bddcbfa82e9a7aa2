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

// Fault is one way to misbehave: the requests that it hits, what happens to them, and how often.
//
//	{On: Lists, Code: 429, RetryAfter: time.Second, Times: 2}  the next two lists are refused
//	{On: StreamingLists, Code: 422}                            a server without streaming lists
//	{Protobuf: true, Code: 406}                                an aggregated API server without protobuf
//	{On: Watches, Effect: CutFrame, Times: 1}                  the next event is cut in half
type Fault struct {
	// The requests that it hits.
	On       Requests                    // zero: all of them
	Resource schema.GroupVersionResource // zero: of any kind
	Protobuf bool                        // only those that are answered in protobuf

	Effect     Effect
	Code       int           // of Reject and ErrorEvent: an HTTP status
	RetryAfter time.Duration // of Reject and ErrorEvent: sent in whole seconds, if not zero
	Changes    int           // of ChangesBeforeEnd: how many; zero: all in the history

	// Name and Version, where set, limit an effect on frames to the events of watches about objects of this
	// name, or to those of this resource version: then whoever watches, and watches again, gets the same
	// frame spoiled, as where the cause is in what is stored.
	Name, Version string

	// Times is how many requests it hits, or how many frames where the effect is on a frame. Zero:
	// until it is ended.
	Times int
}

// Requests is a set of requests. Each request is in one class only.
type Requests uint8

// The classes of requests.
const (
	Gets           Requests = 1 << iota // of one object
	Lists                               // of one page
	Watches                             // but no streaming list
	StreamingLists                      // watches with sendInitialEvents=true
	Discovery
	Writes // creates, updates, patches and deletions
)

// Effect is what happens to a request. A frame is an event of a watch, or the body of a list or get.
type Effect uint8

// The effects.
const (
	// Reject answers with Code. 429 is told as an overloaded API server does it, without a Status.
	Reject Effect = iota
	// Hang answers nothing, not even a status.
	Hang
	// CutFrame ends the connection after half of a frame.
	CutFrame
	// GarbleFrame makes noise of a frame: of an event whole, behind the length that protobuf has
	// before it; of a body its second half.
	GarbleFrame
	// GarbleObject makes noise of a watch event's object, but not of its metadata: it can be seen what the
	// event is about.
	GarbleObject
	// ErrorEvent ends a watch, also an open one, with an ERROR event of Code; zero: 410.
	ErrorEvent
	// IgnoreStreaming answers a streaming list as a server does that does not know its parameters: with
	// the objects and a watch, but no bookmark that tells their end.
	IgnoreStreaming
	// NoEndBookmark leaves out the bookmark that ends the initial events of a streaming list.
	// Bookmarks of other sorts come.
	NoEndBookmark
	// ChangesBeforeEnd lets a streaming list begin with an older state, from before the kind's last
	// Changes changes, and tells those before the bookmark, as from a watch cache that lags behind.
	ChangesBeforeEnd
	// GzipMembers compresses what the client accepts compressed, with a gzip member for every flush, as
	// streaming lists are since Kubernetes 1.37.
	GzipMembers
)

// Misbehave adds a fault, and returns what ends it. Where several of one effect hit a request, the
// first does.
func (s *Server) Misbehave(f Fault) (end func()) {
	frames := f.Effect == CutFrame || f.Effect == GarbleFrame || f.Effect == GarbleObject
	if f.Effect == Reject && f.Code < 400 || f.Effect != Reject && f.Effect != ErrorEvent && f.Code != 0 ||
		!frames && (f.Name != "" || f.Version != "") {
		panic(fmt.Sprintf("informertest: a fault without sense: %+v", f))
	}
	defer s.lock()()
	s.faults = append(s.faults, &f)
	return func() {
		defer s.lock()()
		s.faults = slices.DeleteFunc(s.faults, func(o *Fault) bool { return o == &f })
	}
}

// fault returns the first fault with the effect that hits the request, and counts it; s.mu is held.
func (s *Server) fault(c *call, effect Effect) *Fault { return s.frameFault(c, effect, nil) }

// frameFault is fault, for a frame that is an event; nil is another frame, or none.
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

// concerns says whether a fault is about an event.
func (f *Fault) concerns(e *event) bool {
	if f.Name == "" && f.Version == "" && f.Effect != GarbleObject {
		return true
	}
	return e != nil && e.about != nil && (f.Name == "" || f.Name == e.about.name) && (f.Version == "" || f.Version == formatVersion(e.rv))
}

// seconds are what Retry-After says; 0: nothing.
func (f *Fault) seconds() int { return int(math.Ceil(f.RetryAfter.Seconds())) }

// hit is fault for those who do not hold s.mu.
func (c *call) hit(effect Effect) *Fault {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.fault(c, effect)
}

// frameFault returns what is to happen to the next frame, which is an event or nil: CutFrame, GarbleFrame,
// GarbleObject, or 0.
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

// garbled is the object of an event with readable metadata, which no decoder of its kind accepts: JSON that
// has metadata of another type as well, or a message that ends in noise.
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

// spoil returns a frame as a fault wants it. Garbled, it keeps its first bytes, and a line its end.
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

// hang waits until the client gives up or the connection is broken; it is not answered.
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
