package sink

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

// messages are named by key and number: a0 b0 a1.
func messages(text string) []Message {
	var ms []Message
	for _, id := range strings.Fields(text) {
		ms = append(ms, Message{ID: id, Key: id[:1]})
	}
	return ms
}

func TestSendByKey(t *testing.T) {
	permanent := &PermanentError{Err: errors.New("bad")}
	down := errors.New("down")
	for _, tc := range []struct {
		why, ms string
		fails   map[string]error // by id
		acked   int
		err     error
		sent    string // by key, in any order of keys
	}{
		{"all", "a0 b0 a1 c0 b1", nil, 5, nil, "a0a1 b0b1 c0"},
		{"nothing", "", nil, 0, nil, ""},
		{"one is to blame: the other keys go on, its own does not", "a0 b0 a1 c0 b1 a2", map[string]error{"a1": permanent}, 2, permanent, "a0 b0b1 c0"},
		{"the first of two errors is returned", "a0 b0 a1 b1", map[string]error{"a1": permanent, "b0": down}, 1, down, "a0"},
		{"what was not begun has the receiver's error, and not a message's", "a0 b0 c0", map[string]error{"a0": down}, 0, down, ""},
	} {
		var mu sync.Mutex
		var sent []string
		put := func(_ context.Context, ms []Message) (int, error) {
			var run strings.Builder
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				if run.Len() > 0 {
					sent = append(sent, run.String())
				}
			}()
			for i, m := range ms {
				if err := tc.fails[m.ID]; err != nil {
					return i, err
				}
				run.WriteString(m.ID)
			}
			return len(ms), nil
		}
		// One lane at a time, so that the messages that are not sent are known.
		acked, err := SendByKey(t.Context(), messages(tc.ms), 1, put)
		slices.Sort(sent)
		if got := strings.Join(sent, " "); acked != tc.acked || !errors.Is(err, tc.err) || got != tc.sent {
			t.Errorf("%s: %d, %v, sent %q; want %d, %v, %q", tc.why, acked, err, got, tc.acked, tc.err, tc.sent)
		}
	}
}

// TestStored: an error names what was accepted behind the first message that was not, except what overtook a message of its
// object.
func TestStored(t *testing.T) {
	down := errors.New("down")
	put := func(_ context.Context, ms []Message) (int, error) {
		for i, m := range ms {
			if m.ID == "a1" {
				return i, &PermanentError{Err: down}
			}
		}
		return len(ms), nil
	}
	acked, err := SendByKey(t.Context(), messages("a0 b0 a1 c0 b1 a2"), 1, put)
	if got := Stored(err); acked != 2 || !errors.Is(err, down) || !BlamesMessage(err) || err.Error() != "down" || !slices.Equal(got, []string{"c0", "b1"}) {
		t.Errorf("%d, %v: %v", acked, err, got)
	}
	err = Partial(down, messages("a0 b0 a1 b1"), 0, func(i int) bool { return i > 0 })
	if got := Stored(err); !slices.Equal(got, []string{"b0", "b1"}) {
		t.Errorf("a1 must be sent after a0: %v", got)
	}
	if err := Keep(errors.New("another"), err); !slices.Equal(Stored(err), []string{"b0", "b1"}) || err.Error() != "another" {
		t.Error(err)
	}
	if Partial(nil, nil, 0, nil) != nil || !errors.Is(Partial(down, messages("a0"), 0, func(int) bool { return false }), down) || Keep(nil, err) != nil {
		t.Error("an error is made of nothing")
	}
}

// TestSendByKeyParallel checks that the maximum number of keys is sent concurrently.
func TestSendByKeyParallel(t *testing.T) {
	const parallel = 3
	var mu sync.Mutex
	now, most := 0, 0
	full := make(chan struct{})
	put := func(_ context.Context, ms []Message) (int, error) {
		mu.Lock()
		now++
		most = max(most, now)
		if now == parallel {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-full // otherwise the result would depend on timing
		mu.Lock()
		defer mu.Unlock()
		now--
		return len(ms), nil
	}
	if acked, err := SendByKey(t.Context(), messages("a0 b0 c0 d0 e0 f0 g0"), parallel, put); acked != 7 || err != nil || most != parallel {
		t.Errorf("%d, %v, %d at a time", acked, err, most)
	}
}
