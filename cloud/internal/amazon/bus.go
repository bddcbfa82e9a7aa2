package amazon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/cloud/internal/binding"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Limits of AWS.
const (
	batchEntries  = 10
	maxGroup      = 128
	defaultLimit  = 256 << 10 // every queue and topic accepts it, attributes included
	highestLimit  = 1 << 20   // the maximum that can be configured
	lowestLimit   = 8 << 10   // a lower limit would cut short events
	attributeType = "String"
)

// Entry is a message in the form that both services take.
type Entry struct {
	// ID is unique in a request.
	ID         string
	Body       string
	Attributes map[string]string
	// Group and Dedup are used only for FIFO.
	Group, Dedup string
}

// Failed is the answer for an entry that was not accepted.
type Failed struct {
	ID, Code, Text string
	Sender         bool
}

// Bus sends batches to a queue or a topic.
type Bus struct {
	Client *Client
	// Kind is the kind of the sink.
	Kind string
	// Place is the queue or topic, for errors. Right is the IAM permission that the sink needs.
	Place, Right string
	FIFO         bool
	// Limit bounds a message with its attributes, and a request with all its messages.
	Limit   int
	Timeout time.Duration
	// Put sends one request. It returns the ids of the accepted entries, and the entries that failed.
	Put func(ctx context.Context, entries []Entry) (taken []string, failed []Failed, err error)

	closed atomic.Bool
}

func (b *Bus) String() string { return b.Kind + " " + b.Place }

// Close closes idle connections. After Send there are no others.
func (b *Bus) Close(context.Context) error {
	b.closed.Store(true)
	b.Client.HTTP.CloseIdleConnections()
	return nil
}

// Send sends messages, up to ten per request, one request after the other.
func (b *Bus) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if b.closed.Load() {
		return 0, fmt.Errorf("%s: %w", b.what(), sink.ErrClosed)
	}
	for acked < len(ms) {
		if err := ctx.Err(); err != nil {
			return acked, fmt.Errorf("%s: %w", b.what(), err)
		}
		entries, err := b.batch(ms[acked:])
		if err != nil {
			return acked, err
		}
		stored, err := b.put(ctx, entries)
		first := acked
		for acked < first+len(stored) && stored[acked-first] {
			acked++
		}
		if err != nil {
			return acked, sink.Partial(err, ms, acked, func(i int) bool { return i < first+len(stored) && stored[i-first] })
		}
	}
	return acked, nil
}

// batch makes a request of the first messages. For FIFO, a request contains one message per object: the service could
// refuse the first of two and accept the second.
func (b *Bus) batch(ms []sink.Message) ([]Entry, error) {
	var entries []Entry
	size := 0
	keys := map[string]bool{}
	for i, m := range ms[:min(len(ms), batchEntries)] {
		e := b.entry(strconv.Itoa(i), m)
		length := len(e.Body) + overhead(e)
		if length > b.Limit && i == 0 {
			return nil, &sink.TooLargeError{Limit: b.Limit - overhead(e), Err: fmt.Errorf(
				"%s: %d bytes with its attributes, which exceeds the limit of %d", b.what(), length, b.Limit)}
		}
		if size+length > b.Limit || b.FIFO && keys[m.Key] {
			break
		}
		size += length
		keys[m.Key] = true
		entries = append(entries, e)
	}
	return entries, nil
}

func (b *Bus) entry(id string, m sink.Message) Entry {
	e := Entry{ID: id, Body: allowed(m.Body), Attributes: binding.Attributes(m)}
	if b.FIFO {
		e.Group, e.Dedup = binding.Key(m.Key, maxGroup), m.ID
	}
	return e
}

// put sends a request, and returns which of the entries were accepted, and why the first other one was not.
func (b *Bus) put(ctx context.Context, entries []Entry) (stored []bool, err error) {
	timed, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	taken, failed, err := b.Put(timed, entries)
	switch {
	case err != nil && tooLong(err) && len(entries) > 1: // AWS counts more than we do
		return b.put(ctx, entries[:len(entries)/2])
	case err != nil && tooLong(err):
		return nil, &sink.TooLargeError{Limit: limitOf(err.Error(), overhead(entries[0])), Err: b.described(err)}
	case err != nil && ctx.Err() == nil && timed.Err() != nil:
		return nil, b.wrap(fmt.Errorf("no answer within %s: %w", b.Timeout, err))
	case err != nil:
		return nil, b.failed(err)
	}
	stored = make([]bool, len(entries))
	for i, e := range entries {
		if stored[i] = slices.Contains(taken, e.ID); !stored[i] && err == nil {
			err = b.notTaken(e, failed)
		}
	}
	return stored, err
}

// notTaken returns why an entry was not accepted.
func (b *Bus) notTaken(e Entry, failed []Failed) error {
	for _, f := range failed {
		if f.ID == e.ID {
			return b.refused(refusal{f.Code, f.Text, f.Sender}, overhead(e))
		}
	}
	return errors.New(b.what() + ": the answer does not mention a message")
}

// overhead returns what AWS counts besides the body: the names, types and values of attributes.
func overhead(e Entry) int {
	n := 0
	for name, value := range e.Attributes {
		n += len(name) + len(attributeType) + len(value)
	}
	return n
}

// allowed rewrites the two characters that JSON allows and XML does not as JSON escapes with the same meaning.
func allowed(body []byte) string {
	body = bytes.ReplaceAll(body, []byte("\ufffe"), []byte(`\ufffe`))
	return string(bytes.ReplaceAll(body, []byte("\uffff"), []byte(`\uffff`)))
}

// AttributeType returns the type of all attributes.
func AttributeType() *string { t := attributeType; return &t }
