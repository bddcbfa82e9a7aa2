package sink

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that the clock stands still
		now := time.Now()
		for _, tc := range []struct {
			why, text string
			want      time.Duration
			ok        bool
		}{
			{"seconds", "120", 2 * time.Minute, true},
			{"a part of a second", "0.5", 500 * time.Millisecond, true},
			{"at once", "0", 0, true},
			{"a date", now.Add(30 * time.Second).UTC().Format(http.TimeFormat), 30 * time.Second, true},
			{"a past date", now.Add(-time.Hour).UTC().Format(http.TimeFormat), 0, true},
			{"absurd, but no overflow", "99999999999999999999", LongestWait, true},
			{"infinite", "Inf", LongestWait, true},
			{"negative", "-1", 0, false},
			{"not a number", "NaN", 0, false},
			{"a word", "soon", 0, false},
			{"none", "", 0, false},
		} {
			if got, ok := RetryAfter(tc.text, LongestWait); got != tc.want || ok != tc.ok {
				t.Errorf("%s: %s, %v; want %s, %v", tc.why, got, ok, tc.want, tc.ok)
			}
		}
	})
}

// TestWrap checks that the pump still sees an error's type and its values, and that the text is masked.
func TestWrap(t *testing.T) {
	var m Mask
	m.Add(MinSecret, "hunter2")
	cause := errors.New("no hunter2")
	for _, err := range []error{cause, &PermanentError{cause}, &TooLargeError{Limit: 7, Err: cause}, &RetryAfterError{After: 7, Err: cause}} {
		got := m.Wrap("send to h", err)
		if got.Error() != "send to h: no ***" || !errors.Is(got, cause) || BlamesMessage(got) != BlamesMessage(err) {
			t.Errorf("%T: %T %v", err, got, got)
		}
		var long *TooLargeError
		if errors.As(got, &long) && long.Limit != 7 {
			t.Errorf("limit %d", long.Limit)
		}
		var wait *RetryAfterError
		if errors.As(got, &wait) && wait.After != 7 {
			t.Errorf("wait %s", wait.After)
		}
	}
	if err := m.Wrap("send to h", nil); err != nil {
		t.Error(err)
	}
}

func TestQuery(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"every kind of value", "text=a&bool=true&number=7&duration=3s&list=a&list=b", "a true 7 3s [a b]"},
		{"the last one counts", "text=a&text=b&bool=true&bool=false", "b false 0 0s []"},
		{"an empty query", "", " false 0 0s []"},
		{"an escape that is invalid", "text=%zz", "invalid query"},
		{"an unknown key", "hunter2=a", "known are bool, duration, list, number, text!"},
		{"no boolean", "bool=hunter2", "bool must be true or false"},
		{"no number", "number=hunter2", "number must be a whole number"},
		{"no duration", "duration=hunter2", "duration must be a duration"},
	} {
		var (
			text     string
			truth    bool
			number   int64
			duration time.Duration
			list     []string
		)
		err := Query{"text": Text(&text), "bool": Bool(&truth), "number": Number(&number), "duration": Duration(&duration), "list": List(&list)}.Decode(tc.text, "!")
		got := fmt.Sprint(text, " ", truth, " ", number, " ", duration, " ", list)
		if err != nil {
			got = err.Error()
		}
		if (err != nil || got != tc.want) && (err == nil || !strings.Contains(got, tc.want) || strings.Contains(got, "hunter2")) {
			t.Errorf("%s: %s", tc.why, got)
		}
	}
}

// TestWindow checks what is sent before which acknowledgement. A message is named by its key and number; one that
// starts is in lower case, and one that is acknowledged in upper case.
func TestWindow(t *testing.T) {
	for _, tc := range []struct {
		why, messages string
		size          int
		start, wait   string // the message that fails
		want          string
		acked         int
	}{
		{"objects do not wait for each other", "a0 b0 c0", 0, "", "", "a0 b0 c0 A0 B0 C0", 3},
		{"an object waits for itself", "a0 b0 a1 b1", 0, "", "", "a0 b0 A0 a1 B0 b1 A1 B1", 4},
		{"the window is full", "a0 b0 c0", 2, "", "", "a0 b0 A0 c0 B0 C0", 3},
		{"one at a time", "a0 b0", 1, "", "", "a0 A0 b0 B0", 2},
		{"a refusal keeps the next of its object back", "a0 b0 a1", 0, "", "a0", "a0 b0 A0 B0", 0},
		{"what was started is waited for", "a0 b0 c0 d0 c1", 4, "", "b0", "a0 b0 c0 d0 A0 B0 C0 D0", 1},
		{"one cannot start: earlier ones count", "a0 b0 c0", 0, "b0", "", "a0 b0 A0", 1},
		{"an earlier refusal comes first", "a0 b0 c0", 0, "b0", "a0", "a0 b0 A0", 0},
	} {
		var ms []Message
		for _, id := range strings.Fields(tc.messages) {
			ms = append(ms, Message{ID: id, Key: id[:1]})
		}
		var log []string
		fails := ""
		step := func(id, shown, fail string) error {
			log = append(log, shown)
			if id == fail {
				fails = id
				return errors.New(id)
			}
			return nil
		}
		w := Window[string]{
			Size:  tc.size,
			Start: func(m Message) (string, error) { return m.ID, step(m.ID, m.ID, tc.start) },
			Wait:  func(m Message, started string) error { return step(started, strings.ToUpper(m.ID), tc.wait) },
		}
		acked, err := w.Send(ms)
		for i, m := range ms { // each is stored, failed, or was not started
			failed, started := m.ID == fails, slices.Contains(log, strings.ToUpper(m.ID))
			if is := i < acked || slices.Contains(Stored(err), m.ID); is != (started && !failed) {
				t.Errorf("%s: %s is stored: %v", tc.why, m.ID, is)
			}
		}
		if got := strings.Join(log, " "); got != tc.want || acked != tc.acked || (err == nil) != (fails == "") || err != nil && err.Error() != ms[acked].ID {
			t.Errorf("%s: %s; %d acknowledged, %v", tc.why, got, acked, err)
		}
	}
}
