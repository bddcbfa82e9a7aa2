package informer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Hooks report events, for metrics and logs. Each may be nil. The working goroutines call them, concurrently: they
// must be fast and must not block. None receives an object's content.
type Hooks struct {
	// List is called when a list ends, Watch when a watch ends, failed ones included.
	List  func(ListInfo)
	Watch func(WatchInfo)
	// Expired is called for every 410: the server no longer has the version that the stream needs.
	Expired func(Stream)
	// Gap is called for every gap, with its reason.
	Gap func(Stream, Gap)
	// State is called for every state transition of every stream.
	State func(Status)
	// DecodeError is called for an object that a view cannot decode; LossyDecode for one with fields that the Go type
	// does not have, which is noticed in protobuf only.
	DecodeError func(Stream, error)
	LossyDecode func(Stream)
	// IndexError is called when an index's function panics.
	IndexError func(Stream, Key, error)
	// Mutation is called for a shared object that was modified. The error names the path and a reader of the object,
	// and no value. Only a sample of objects is checked; after a finding, all objects are decoded again.
	Mutation func(Stream, Key, error)
	// Lag is called each time a subscriber takes a batch, with what is still queued.
	Lag func(resource schema.GroupVersionResource, consumer string, lag Lag)
	// Checkpoint is called when a stream's checkpoint cannot be read or written.
	Checkpoint func(Stream, error)
	// Audit is called after every audit: see Options.AuditEvery.
	Audit func(AuditInfo)
	// Stalled is called when a stall is over (see Options.Heartbeat), with the last moment at which the connection worked
	// before it, and the moment at which it works again. Paused means that this process did not run, for example because
	// the machine slept; otherwise the server did not answer.
	Stalled func(since, until time.Time, paused bool)
}

// ListInfo describes a list.
type ListInfo struct {
	Stream Stream
	// Streaming is true for a streaming list, false for a paged one. Protobuf is false for JSON.
	Streaming, Protobuf bool
	Duration            time.Duration
	// Objects and Bytes count what was read, bytes after decompression.
	Objects, Bytes int64
	// Err is why the list was not completed.
	Err error
}

// WatchInfo describes a watch.
type WatchInfo struct {
	Stream   Stream
	Protobuf bool
	Duration time.Duration
	// Events and Bytes count what was read, except for the list part of a streaming list.
	Events, Bytes int64
	// Err is why it ended; nil if the server closed it, as it does every few minutes.
	Err error
}

// AuditInfo describes an audit.
type AuditInfo struct {
	Stream Stream
	// Contents is true for an audit that compared whole objects, false for one that compared UIDs and
	// versions.
	Contents bool
	Duration time.Duration
	// Objects and Bytes count what was read, bytes after decompression. Reread counts objects whose content or sum
	// differed from the stored one at the same version, and objects that the watch could not read.
	Objects, Bytes, Reread int64
	// Err is why the audit was inconclusive, or ErrMissed if it found changes that the watch did not deliver: the
	// stream is then relisted, after a Gap with ReasonMissed.
	Err error
}

// reports are the hooks and the log of a cluster.
type reports struct {
	Hooks
	log *streamLog
}

func (h *reports) audit(info AuditInfo) {
	if h.Audit != nil {
		h.Audit(info)
	}
}

func (h *reports) decodeError(s Stream, err error) {
	h.log.decodeError(s, err)
	if h.DecodeError != nil {
		h.DecodeError(s, err)
	}
}

func (h *reports) lossyDecode(s Stream) {
	if h.LossyDecode != nil {
		h.LossyDecode(s)
	}
}

func (h *reports) indexError(s Stream, k Key, err error) {
	h.log.indexError(s, k, err)
	if h.IndexError != nil {
		h.IndexError(s, k, err)
	}
}

func (h *reports) mutation(s Stream, k Key, err error) {
	h.log.mutation(s, k, err)
	if h.Mutation != nil {
		h.Mutation(s, k, err)
	}
}

func (h *reports) lag(gvr schema.GroupVersionResource, c *consumer) {
	if h.Lag != nil {
		h.Lag(gvr, c.name, c.lag())
	}
}

func (h *reports) gap(s Stream, g Gap) {
	h.log.gap(s, g)
	if h.Gap != nil {
		h.Gap(s, g)
	}
}

func (h *reports) state(st Status) {
	h.log.state(st)
	if h.State != nil {
		h.State(st)
	}
}

func (h *reports) checkpoint(s Stream, err error) {
	h.log.checkpoint(s, err)
	if h.Checkpoint != nil {
		h.Checkpoint(s, err)
	}
}
