package amazon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/cloud/internal/binding"
	"github.com/tattler-dev/tattler/internal/sink"
)

// What AWS bounds.
const (
	batchEntries  = 10
	maxGroup      = 128
	defaultLimit  = 256 << 10 // what every queue and topic takes, attributes included
	highestLimit  = 1 << 20   // what one may be made to take
	lowestLimit   = 8 << 10   // less would cut what is short
	attributeType = "String"
)

// Entry is a message as both services take it.
type Entry struct {
	// ID is unlike that of the others in a request.
	ID         string
	Body       string
	Attributes map[string]string
	// Group and Dedup are empty but for FIFO.
	Group, Dedup string
}

// Failed is what the answer says of an entry that was not taken.
type Failed struct {
	ID, Code, Text string
	Sender         bool
}

// Bus sends batches to a queue or a topic.
type Bus struct {
	Client *Client
	// Place is the queue or topic in errors; Right what IAM must allow.
	Place, Right string
	FIFO         bool
	// Limit is how long a message may be with its attributes, and a request with all of its messages.
	Limit   int
	Timeout time.Duration
	// Put sends one request, and returns the ids that were taken, and those that were not.
	Put func(ctx context.Context, entries []Entry) (taken []string, failed []Failed, err error)

	closed atomic.Bool
}

// Close closes idle connections; no other is there after Send.
func (b *Bus) Close() {
	b.closed.Store(true)
	b.Client.HTTP.CloseIdleConnections()
}

// Send is that of sink.Sink.
func (b *Bus) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if b.closed.Load() {
		return 0, fmt.Errorf("%s: the sink is closed", b.what())
	}
	for acked < len(ms) {
		if err := ctx.Err(); err != nil {
			return acked, fmt.Errorf("%s: %w", b.what(), err)
		}
		entries, err := b.batch(ms[acked:])
		if err != nil {
			return acked, err
		}
		n, err := b.put(ctx, entries)
		acked += n
		if err != nil {
			return acked, err
		}
	}
	return acked, nil
}

// batch makes a request of the first messages. One of FIFO ends before a second message of an object: of
// two in a request the service may take the second and refuse the first.
func (b *Bus) batch(ms []sink.Message) ([]Entry, error) {
	var entries []Entry
	size := 0
	keys := map[string]bool{}
	for i, m := range ms[:min(len(ms), batchEntries)] {
		e := b.entry(strconv.Itoa(i), m)
		length := len(e.Body) + overhead(e)
		if length > b.Limit && i == 0 {
			return nil, &sink.TooLargeError{Limit: b.Limit - overhead(e), Err: fmt.Errorf(
				"%s: %d bytes with its attributes, and the limit is %d", b.what(), length, b.Limit)}
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

// put sends a request, and returns how many of the first entries were taken.
func (b *Bus) put(ctx context.Context, entries []Entry) (int, error) {
	asking, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	taken, failed, err := b.Put(asking, entries)
	switch {
	case err != nil && tooLong(err) && len(entries) > 1: // it counts more than we do
		return b.put(ctx, entries[:len(entries)/2])
	case err != nil && tooLong(err):
		return 0, &sink.TooLargeError{Limit: limitOf(err.Error(), overhead(entries[0])), Err: b.told(err)}
	case err != nil && ctx.Err() == nil && asking.Err() != nil:
		return 0, fmt.Errorf("%s: no answer within %s: %w", b.what(), b.Timeout, b.Client.seen.blot().Error(err))
	case err != nil:
		return 0, b.failed(err)
	}
	ok := map[string]bool{}
	for _, id := range taken {
		ok[id] = true
	}
	for i, e := range entries {
		if ok[e.ID] {
			continue
		}
		for _, f := range failed {
			if f.ID == e.ID {
				return i, b.refused(refusal{f.Code, f.Text, f.Sender}, overhead(e))
			}
		}
		return i, errors.New(b.what() + ": the answer leaves out a message")
	}
	return len(entries), nil
}

// overhead is what AWS counts besides the body: names, types and values.
func overhead(e Entry) int {
	n := 0
	for name, value := range e.Attributes {
		n += len(name) + len(attributeType) + len(value)
	}
	return n
}

// allowed is a body without the two characters that JSON has and XML has not: they are written as JSON's
// escapes, which mean the same.
func allowed(body []byte) string {
	body = bytes.ReplaceAll(body, []byte("\ufffe"), []byte(`\ufffe`))
	return string(bytes.ReplaceAll(body, []byte("\uffff"), []byte(`\uffff`)))
}

// AttributeType is that of all attributes.
func AttributeType() *string { t := attributeType; return &t }
