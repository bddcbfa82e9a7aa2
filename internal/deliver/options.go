package deliver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Options configure a pump.
type Options struct {
	// Name is the sink's name in the configuration; the cursor and dead letters are kept under it.
	Name  string
	Sink  sink.Sink
	Store Store

	// Where selects changes; nil selects all. A change on which it fails is delivered, marked, logged and counted. It
	// also receives gaps, which have no object.
	Where Filter
	// Snapshots also delivers the objects of the first list.
	Snapshots bool
	// From is where a sink without a cursor starts. The zero value is Now.
	From From
	// Include adds parts to an update that are left out by default.
	Include []Include
	// MaxBytes bounds a body; a larger one is cut and marked as truncated. Zero means no limit.
	MaxBytes int

	Retry Retry
	// SendTimeout bounds one call of Send, and so how much is sent again after a crash (1 minute, or what a
	// sink.SlowSink needs if that is more).
	SendTimeout time.Duration
	// Drain bounds how long Run continues after its context has ended (10 seconds).
	Drain time.Duration
	// Paused starts the pump paused.
	Paused bool
	// Traces, if set, learns how each delivery ended.
	Traces Traces
	// Log receives a line when a sink starts to fail, when it works again, for each dead letter, and at
	// intervals while the filter fails. Nil logs nothing.
	Log *slog.Logger
}

// Filter selects changes: a where.Expr.
type Filter interface {
	Match(c *change.Change) (bool, error)
	// Reads reports whether Match reads a variable, such as before or after.
	Reads(variable string) bool
	// String is the source text, for the log.
	String() string
}

// From is a start in the journal.
type From string

const (
	// Now is the end of the journal when Prepare runs.
	Now From = "now"
	// Beginning is the oldest kept change.
	Beginning From = "beginning"
)

// Include is a part of an update that is left out by default.
type Include string

const (
	// Before is the whole object before the update.
	Before Include = "before"
	// After is the whole object after it.
	After Include = "after"
	// Patch is the difference as an RFC 6902 patch.
	Patch Include = "patch"
)

// Retry configures when and how often a sink is retried.
type Retry struct {
	// Min is the first wait after an error; each further one is twice as long, up to Max. A random part of up
	// to half is subtracted, so that pumps do not synchronize. 1 second and 5 minutes.
	Min time.Duration `yaml:"min"`
	Max time.Duration `yaml:"max"`
	// Attempts is how often a message that the receiver refuses permanently is sent before it is set aside (3:
	// a receiver may be in the middle of its own deployment). Temporary errors are retried until GiveUp.
	Attempts int `yaml:"attempts"`
	// GiveUp is how long a message is retried on temporary errors before it is set aside (0: forever), counted
	// from the first error in this run of the pump.
	GiveUp time.Duration `yaml:"giveUp"`
}

// MinMaxBytes is the minimum of MaxBytes: an object's names always fit.
const MinMaxBytes = 4 << 10

// Limits of a batch, which is sent and held in memory at once: messages, and bytes (or one larger message).
// Scanned bounds how far the cursor may lag while nothing matches.
const (
	batchMessages = 100
	batchBytes    = 1 << 20
	batchScanned  = 10_000
)

// commitEvery is how often the cursor is written while there is nothing to send: a transaction for each change
// that does not match would cost the journal as much as the change.
const commitEvery = time.Second

// maxRetryAfter bounds the wait that a receiver can ask for.
const maxRetryAfter = time.Hour

// Whole reports whether the sink needs the objects of updates: to filter, include, show or narrate them.
func (o *Options) Whole() bool {
	return len(o.Include) > 0 || o.Where != nil && (o.Where.Reads("before") || o.Where.Reads("after")) || o.shows() || o.narrates()
}

// narrates reports whether the sink uses Message.Story.
func (o *Options) narrates() bool {
	s, ok := o.Sink.(sink.StorySink)
	return ok && s.UsesStory()
}

// shows reports whether the sink uses Message.Text.
func (o *Options) shows() bool {
	s, ok := o.Sink.(sink.TextSink)
	return ok && s.UsesText()
}

// Validate checks the options.
func (o *Options) Validate() error {
	switch {
	case o.Name == "":
		return errors.New("name: a sink needs one")
	case o.Sink == nil || o.Store == nil:
		return errors.New("a pump needs a sink and a store")
	case o.From != "" && o.From != Now && o.From != Beginning:
		return fmt.Errorf("from: %q is neither %s nor %s", o.From, Now, Beginning)
	case o.MaxBytes != 0 && o.MaxBytes < MinMaxBytes:
		return fmt.Errorf("maxBytes: at least %d", MinMaxBytes)
	case o.SendTimeout < 0 || o.Drain < 0:
		return errors.New("timeouts must not be negative")
	}
	for _, i := range o.Include {
		if !slices.Contains([]Include{Before, After, Patch}, i) {
			return fmt.Errorf("include: %q is not one of %s, %s, %s", i, Before, After, Patch)
		}
	}
	if err := o.Retry.Validate(); err != nil {
		return fmt.Errorf("retry: %w", err)
	}
	return nil
}

// Validate checks the options; the zero value is valid.
func (r Retry) Validate() error {
	d := r.withDefaults()
	switch {
	case r.Min < 0 || r.Max < 0 || r.Attempts < 0 || r.GiveUp < 0:
		return errors.New("min, max, attempts and giveUp must not be negative")
	case d.Max < d.Min:
		return fmt.Errorf("max: %s is less than min: %s", d.Max, d.Min)
	}
	return nil
}

func (r Retry) withDefaults() Retry {
	r.Min = cmp.Or(r.Min, time.Second)
	r.Max = cmp.Or(r.Max, max(5*time.Minute, r.Min))
	r.Attempts = cmp.Or(r.Attempts, 3)
	return r
}

func (o Options) withDefaults() Options {
	o.From = cmp.Or(o.From, Now)
	o.Retry = o.Retry.withDefaults()
	if o.SendTimeout == 0 {
		o.SendTimeout = time.Minute
		if p, ok := o.Sink.(sink.SlowSink); ok {
			o.SendTimeout = max(o.SendTimeout, p.MinSendTimeout())
		}
	}
	o.Drain = cmp.Or(o.Drain, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
