package reflector

import (
	"context"
	"errors"
	"io"
	"net/url"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Sink takes what the server says. The loop calls it from one goroutine.
//
// Where a method returns an error, ErrRewritten says that what the server told proves another
// history; there are no others.
type Sink interface {
	// Begin starts a list from its first object; with newEpoch, under another history. A list that
	// was under way is given up, but what it named stays.
	Begin(newEpoch bool)
	// Item is one object of a list; its bytes are valid during the call. A streaming list may name
	// an object again, in a later version.
	Item(wire.Object) error
	// Gone is an object that was deleted while a streaming list was under way: the last known
	// object, with the version of its deletion. Raw is nil where that cannot be read.
	Gone(wire.Object)
	// Unreadable says that a list holds an object that cannot be read; its metadata may be known.
	Unreadable(wire.Meta, error)
	// Page ends a page of a list that has the version; a streaming list is one page.
	Page(version string) error
	// Live ends a list: what it did not name is gone.
	Live(version string)
	// Event is one change; its bytes are valid during the call. Of a Deleted object that cannot be
	// read but for its metadata, Raw is nil; Missed has reported it.
	Event(wire.Event) error
	// Skipped is an object that the server has in a version that cannot be read; Missed has reported it. What the
	// sink knows of it is out of date.
	Skipped(wire.Meta)
	// Bookmark says that everything up to the version was seen.
	Bookmark(version string) error
	// CaughtUp says that the state that was loaded is as current as a list would be: everything up
	// to the version was seen since. It comes at most once; where a list comes instead, under the
	// same epoch, what the sink would have checked here is still open.
	CaughtUp(version string) error
	// Behind says that what a watch is going to deliver, up to the version, happened before it was opened, while
	// nothing was received.
	Behind(version string)
	// Settle says that everything was seen that the server had when Reflector.Doubt was in doubt.
	Settle() error
	// Current says that nothing is missing at this moment, though nothing happened: the server ended
	// a watch in order.
	Current()
	// Missed says that versions after Version are or will be missing, because of err. With tell, no list
	// follows that would tell of it.
	Missed(reason string, err error, tell bool)
	// Version is where a watch resumes.
	Version() string
	// Report tells where the stream stands, after each step.
	Report(Machine)
}

// ErrRewritten is what a Sink returns for what is older than what it knows.
var ErrRewritten = errors.New("the server's history was replaced")

// Opener sends a GET for the stream's collection and returns the body of a successful answer and the
// format of its objects. With watch, a watch stream is expected: a streaming list is one.
type Opener func(ctx context.Context, watch bool, query url.Values) (io.ReadCloser, wire.Format, error)

// Note tells an observer of one request, or of what it met.
type Note struct {
	Kind NoteKind
	// Streaming is set of a streaming list.
	Streaming bool
	// Format is what the objects came in; zero where nothing came.
	Format wire.Format
	// Objects counts those of a list, or the frames of a watch.
	Objects int
	// Bytes were read of the bodies, behind their decompression.
	Bytes int64
	// Took is how long the list or watch lasted.
	Took time.Duration
	// Err is why a list failed, or a watch ended unless the server closed it; and the cause of
	// NotedExpired and NotedUnreadable.
	Err error
}

// NoteKind is what a Note is about.
type NoteKind uint8

// The kinds of notes. A streaming list is a list up to its end and a watch from there on; the list
// of one object that probes the server is neither.
const (
	NotedListBegan NoteKind = 1 + iota
	NotedListEnded
	NotedWatchOpened
	NotedWatchClosed
	// NotedExpired is a 410, in an answer or in a stream.
	NotedExpired
	// NotedUnreadable is an object or frame that could not be read.
	NotedUnreadable
)
