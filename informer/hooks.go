package informer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Hooks are told what happens, for metrics and logs. Each may be nil. They are called by the
// goroutines that do the work, several at once: they must be quick and must not block. None gets an
// object's content.
type Hooks struct {
	// List hears of every list that ended, also in failure; Watch of every watch that did.
	List  func(ListInfo)
	Watch func(WatchInfo)
	// Expired hears of every 410: the server no longer has what the stream needs.
	Expired func(Stream)
	// Gap hears of every gap, with its reason.
	Gap func(Stream, Gap)
	// State hears of every transition of every stream.
	State func(Status)
	// DecodeError hears of an object that a view could not decode; LossyDecode of one with fields
	// that the Go type does not have, which is told of protobuf only.
	DecodeError func(Stream, error)
	LossyDecode func(Stream)
	// IndexError hears of a panic of an index's function.
	IndexError func(Stream, Key, error)
	// Mutation hears of a shared object that somebody wrote to. The error names the place and a reader that had the
	// object, and no value. Only a few objects are checked; after a finding all are decoded anew.
	Mutation func(Stream, Key, error)
	// Lag hears, each time a consumer takes something, what it has yet to take.
	Lag func(resource schema.GroupVersionResource, consumer string, lag Lag)
	// Checkpoint hears of every failure to read or write a stream's checkpoint.
	Checkpoint func(Stream, error)
	// Audit is called after every audit: see Options.AuditEvery.
	Audit func(AuditInfo)
}

// ListInfo describes a list.
type ListInfo struct {
	Stream Stream
	// Streaming tells a streaming list from a paged one, Protobuf what its format was.
	Streaming, Protobuf bool
	Duration            time.Duration
	// Objects and Bytes are what was read; the bytes, after decompression.
	Objects, Bytes int64
	// Err is why the list was not completed.
	Err error
}

// WatchInfo describes a watch.
type WatchInfo struct {
	Stream   Stream
	Protobuf bool
	Duration time.Duration
	// Events and Bytes are what was read, without what a streaming list listed.
	Events, Bytes int64
	// Err is why it ended; nil where the server closed it, as it does every few minutes.
	Err error
}

// AuditInfo describes an audit.
type AuditInfo struct {
	Stream Stream
	// Contents is true for an audit that compared whole objects, false for one that compared UIDs and
	// versions.
	Contents bool
	Duration time.Duration
	// Objects and Bytes are what was read; the bytes, after decompression. Reread counts the objects whose
	// content or sum differed from what was stored although their version did not, and those that the
	// watch could not read.
	Objects, Bytes, Reread int64
	// Err is why the audit could not decide, or that it found changes that the watch had not shown: the
	// stream is then listed anew, behind a Gap with ReasonMissed.
	Err error
}

func (h *Hooks) audit(info AuditInfo) {
	if h.Audit != nil {
		h.Audit(info)
	}
}

func (h *Hooks) decodeError(s Stream, err error) {
	if h.DecodeError != nil {
		h.DecodeError(s, err)
	}
}

func (h *Hooks) lossyDecode(s Stream) {
	if h.LossyDecode != nil {
		h.LossyDecode(s)
	}
}

func (h *Hooks) indexError(s Stream, k Key, err error) {
	if h.IndexError != nil {
		h.IndexError(s, k, err)
	}
}

func (h *Hooks) mutation(s Stream, k Key, err error) {
	if h.Mutation != nil {
		h.Mutation(s, k, err)
	}
}

func (h *Hooks) lag(gvr schema.GroupVersionResource, c *consumer) {
	if h.Lag != nil {
		h.Lag(gvr, c.name, c.lag())
	}
}

func (h *Hooks) gap(s Stream, g Gap) {
	if h.Gap != nil {
		h.Gap(s, g)
	}
}

func (h *Hooks) state(st Status) {
	if h.State != nil {
		h.State(st)
	}
}

func (h *Hooks) checkpoint(s Stream, err error) {
	if h.Checkpoint != nil {
		h.Checkpoint(s, err)
	}
}
