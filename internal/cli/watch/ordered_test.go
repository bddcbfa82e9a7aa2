package watch

import (
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/render"
)

// recorder is a printer that stores what it is given.
type recorder struct{ shown []string }

func (r *recorder) Change(_ time.Time, c change.Change) error {
	r.shown = append(r.shown, c.Name+c.ResourceVersion)
	return nil
}

func (r *recorder) Notice(_ time.Time, text string) error {
	r.shown = append(r.shown, text)
	return nil
}
func (r *recorder) SetWidth(int)            {}
func (r *recorder) Next() (time.Time, bool) { return time.Time{}, false }
func (r *recorder) Tick(time.Time) error    { return nil }
func (r *recorder) Flush(time.Time) error   { return nil }
func (r *recorder) Unlisted() string        { return "" }

func TestOrdered(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	change := func(name, version string) change.Change {
		return change.Change{Meta: change.Meta{Op: event.Updated, Name: name, ResourceVersion: version}}
	}
	for _, tt := range []struct {
		why  string
		do   func(o *ordered)
		want string
	}{
		{"an effect that came before its cause is shown after it", func(o *ordered) {
			_ = o.Change(at(0), change("rs", "12"))
			_ = o.Change(at(5), change("deploy", "11"))
			_ = o.Tick(at(100))
		}, "deploy11 rs12"},
		{"nothing is shown before its time", func(o *ordered) {
			_ = o.Change(at(0), change("a", "1"))
			_ = o.Tick(at(99))
		}, ""},
		{"a younger change waits for its own time", func(o *ordered) {
			_ = o.Change(at(0), change("a", "1"))
			_ = o.Change(at(50), change("b", "2"))
			_ = o.Tick(at(100))
		}, "a1"},
		{"versions are numbers of any length", func(o *ordered) {
			_ = o.Change(at(0), change("b", "10"))
			_ = o.Change(at(1), change("a", "9"))
			_ = o.Tick(at(100))
		}, "a9 b10"},
		{"of the same version, such as a missed deletion's, the first stays first", func(o *ordered) {
			_ = o.Change(at(0), change("a", "5"))
			_ = o.Change(at(1), change("b", "5"))
			_ = o.Tick(at(100))
		}, "a5 b5"},
		{"a net change has no place, and comes after what came before it", func(o *ordered) {
			_ = o.Change(at(0), change("a", "9"))
			c := change("b", "3")
			c.Since, c.Net = at(-1000), true
			_ = o.Change(at(1), c)
		}, "a9 b3"},
		{"so has a version that is not a number", func(o *ordered) {
			_ = o.Change(at(0), change("a", "9"))
			_ = o.Change(at(1), change("b", "x"))
		}, "a9 bx"},
		{"a notice keeps its place", func(o *ordered) {
			_ = o.Change(at(0), change("a", "9"))
			_ = o.Notice(at(1), "away")
			_ = o.Change(at(2), change("b", "1"))
			_ = o.Flush(at(3))
		}, "a9 away b1"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			r := &recorder{}
			tt.do(&ordered{printer: r})
			if got := strings.Join(r.shown, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOrderedNext(t *testing.T) {
	o := &ordered{printer: &recorder{}}
	if _, ok := o.Next(); ok {
		t.Error("wants to be called with nothing to show")
	}
	now := time.Unix(1000, 0)
	_ = o.Change(now, change.Change{Meta: change.Meta{Op: event.Updated, ResourceVersion: "1"}})
	if at, ok := o.Next(); !ok || !at.Equal(now.Add(render.OrderWindow)) {
		t.Errorf("wants to be called at %v, %v", at, ok)
	}
}
