package reflector

import (
	"context"
	"errors"
	"io"
	"net/url"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Sink receives a stream's objects and events. The loop calls it from one goroutine.
//
// A method's only error is ErrReplaced: the server has another history.
type Sink interface {
	// Begin starts a list before its first object; Outdated begins an epoch. A list in progress is abandoned, but
	// the objects that it named stay.
	Begin(Trust)
	// Item is one object of a list; its bytes are valid during the call. A streaming list may name an object
	// again in a later version.
	Item(wire.Object) error
	// Gone is an object that was deleted during a streaming list: the last known object, with the version of
	// its deletion. Raw is nil if the object cannot be read.
	Gone(wire.Object)
	// Unreadable reports an unreadable object in a list; its metadata may be known.
	Unreadable(wire.Meta, error)
	// Page ends a page of a list with that version; a streaming list is one page.
	Page(version string) error
	// Live ends a list: objects that it did not name are gone.
	Live(version string)
	// Event is one change; its bytes are valid during the call. Raw is nil for a Deleted object of which only
	// the metadata could be read; Missed has reported it.
	Event(wire.Event) error
	// Skipped reports that the server has the object in an unreadable version, so that the sink's state of it
	// is outdated. Missed has reported it.
	Skipped(wire.Meta)
	// Bookmark says that everything up to the version was seen.
	Bookmark(version string) error
	// CaughtUp says that the loaded state is as current as a list: everything up to the version has been seen
	// since. It is called at most once. If a list under the same epoch comes instead, the checks that the sink
	// would have made here are still open.
	CaughtUp(version string) error
	// Behind says that the events up to the version, which a watch is about to deliver, happened before the
	// watch was opened, while nothing was received.
	Behind(version string)
	// HistoryChecked says that everything has been seen that the server had when Reflector.CheckHistory
	// returned pending.
	HistoryChecked() error
	// Current says that nothing is missing at this moment, although no event arrived: the server ended a watch
	// in order, and not within a second without a frame. After Behind, a server that shuts down may have sent only
	// some of the events.
	Current()
	// Missed says that versions after Version are or will be missing because of err. With now, no list follows
	// that would replace them.
	Missed(reason string, err error, now bool)
	// Retire says that all objects are gone with their kind, which Missed has reported.
	Retire()
	// Version is the version from which a watch resumes.
	Version() string
	// Report receives the stream's state after each step.
	Report(Machine)
}

// ErrReplaced is returned by a Sink for a version older than one it knows, and for any version once another stream has
// proven it.
var ErrReplaced = errors.New("the server's history was replaced")

// Opener sends a GET for the stream's collection and returns the body of a successful response and the format
// of its objects. watch requests a watch stream; a streaming list is one.
type Opener func(ctx context.Context, watch bool, query url.Values) (io.ReadCloser, wire.Format, error)

// Note describes one request or an incident in it, for an observer.
type Note struct {
	Kind NoteKind
	// Streaming is set for a streaming list.
	Streaming bool
	// Format is the format of the objects; zero if none arrived.
	Format wire.Format
	// Objects counts the objects of a list or the frames of a watch.
	Objects int
	// Bytes counts the decompressed bytes of the bodies.
	Bytes int64
	// Took is the duration of the list or watch.
	Took time.Duration
	// Err is the reason for which a list failed, or a watch ended unless the server closed it; or the cause of
	// NotedExpired and NotedUnreadable.
	Err error
}

// NoteKind is the kind of a Note.
type NoteKind uint8

// The kinds of notes. A streaming list is a list up to its end and a watch from there on. Probes, which list
// one object, are not noted.
const (
	NotedListBegan NoteKind = 1 + iota
	NotedListEnded
	NotedWatchOpened
	NotedWatchClosed
	// NotedExpired is a 410, as a response or in a stream.
	NotedExpired
	// NotedUnreadable is an object or frame that could not be read.
	NotedUnreadable
)
