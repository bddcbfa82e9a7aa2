package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/story"
)

// Source is a journal to read: a file, a part of it that a viewer may see, or a journal that a daemon serves.
// *journal.Reader documents the methods.
//
// All methods may be called concurrently. Entries can be used until Close.
type Source interface {
	// Cluster is the name in the ids of changes, unless a kind names another cluster.
	Cluster() string
	// Clusters returns the names of the recorded clusters, sorted.
	Clusters(ctx context.Context) ([]string, error)
	// Last returns the newest sequence number ever assigned. RecordedUntil returns up to when a daemon recorded.
	Last(ctx context.Context) (seq int64, err error)
	RecordedUntil(ctx context.Context) (at time.Time, err error)

	// Rows yields changes. ByID returns the change whose id begins with prefix: else journal.ErrNotFound, or a
	// *journal.AmbiguousError.
	Rows(ctx context.Context, q journal.Query) iter.Seq2[journal.Entry, error]
	ByID(ctx context.Context, prefix string) (journal.Entry, error)

	// Stories yields stories, and Story returns the one whose id begins with prefix: else as ByID.
	Stories(ctx context.Context, q journal.Query) iter.Seq2[story.Tree, error]
	Story(ctx context.Context, prefix string) (story.Tree, error)

	// At and Between yield states of objects. History yields the changes that led to a state, which comes from this
	// Source.
	At(ctx context.Context, q journal.Query, t time.Time) iter.Seq2[journal.State, error]
	Between(ctx context.Context, q journal.Query) iter.Seq2[[2]journal.State, error]
	History(ctx context.Context, s *journal.State) iter.Seq2[journal.Step, error]

	// Kinds returns the recorded kinds, and Names the names of objects, for completion.
	Kinds(ctx context.Context) ([]journal.Kind, error)
	Names(ctx context.Context, resources []string, namespace, prefix string, limit int) ([]string, error)
	// Schema returns a kind's merge keys as of a change, ShortNames the kinds' short names by group-resource.
	Schema(ctx context.Context, k journal.Kind, seq int64) (journal.KindSchema, error)
	ShortNames(ctx context.Context) (map[string][]string, error)

	Close() error
}

var _ Source = (*journal.Reader)(nil)

// UnavailableError says that a Source cannot be read for now: the daemon that serves it does not answer, ends in the middle
// of an answer, or is too busy. The same call may succeed later.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// ContentError says that what the journal has of an object is not a JSON object.
type ContentError struct {
	Subject string // the object
	Err     error
}

func (e *ContentError) Error() string { return fmt.Sprintf("decode %s: %v", e.Subject, e.Err) }
func (e *ContentError) Unwrap() error { return e.Err }

// Damaged reports whether an error is about what the journal has of one change or state: a *journal.DamagedError or a
// *ContentError. It will not become readable, and the others can be read. After any other error, such as a lost
// connection, the caller must not go on as if it had seen everything.
func Damaged(err error) bool {
	var damaged *journal.DamagedError
	var content *ContentError
	return errors.As(err, &damaged) || errors.As(err, &content)
}
