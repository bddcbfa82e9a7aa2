package event_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/tattler-dev/tattler/event"
)

func TestDedup(t *testing.T) {
	d := event.NewDedup(3)
	for _, tc := range []struct {
		why, id string
		want    bool
	}{
		{"the first", "a", false},
		{"again", "a", true},
		{"another", "b", false},
		{"the third fits", "c", false},
		{"all are remembered", "a", true},
		{"the fourth pushes the oldest out", "d", false},
		{"the oldest is new again, and pushes the next out", "a", false},
		{"which is new, too", "b", false},
		{"the newest are remembered", "a", true},
	} {
		if got := d.Seen(tc.id); got != tc.want {
			t.Errorf("%s: %v", tc.why, got)
		}
	}
	d.Forget("a")
	d.Forget("never seen")
	if d.Seen("a") {
		t.Error("a forgotten id is remembered")
	}
	if !d.Seen("b") || !d.Seen("a") {
		t.Error("forgetting one forgot others")
	}
	if d := event.NewDedup(0); d.Seen("a") || !d.Seen("a") {
		t.Error("the smallest remembers one")
	}
}

// A consumer handles each event once, whatever is repeated.
func ExampleDedup() {
	seen := event.NewDedup(10_000)
	consume := func(body []byte) error {
		var e event.Event
		if err := json.Unmarshal(body, &e); err != nil {
			return err
		}
		if e.ID == "" {
			return errors.New("no event")
		}
		if !seen.Seen(e.ID) {
			fmt.Println(e.Data.Op, e.Data.Resource.Kind, e.Data.Resource.Name)
		}
		return nil
	}
	body := []byte(`{"id":"o4…","data":{"op":"updated","resource":{"kind":"Deployment","name":"web"}}}`)
	for range 2 {
		if err := consume(body); err != nil {
			fmt.Println(err)
		}
	}
	// Output: updated Deployment web
}
