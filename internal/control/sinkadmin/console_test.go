package sinkadmin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestConsole: the daemon's state comes first; what it does not have comes from the journal.
func TestConsole(t *testing.T) {
	d, ids := opened(t, 6, 4)
	ctx := t.Context()
	for i := range 3 {
		letter := journal.DeadLetter{Sink: "hook", Seq: int64(3 - i), ID: ids[2-i], Reason: "400", Attempts: 1, At: epoch.Add(time.Duration(i) * time.Second)}
		if _, err := d.Journal.SetAside(ctx, letter); err != nil {
			t.Fatal(err)
		}
	}
	var status control.Status
	var down error
	c := &Console{
		Status: func(context.Context) (control.Status, error) { return status, down },
		Orders: func() control.Orders { return nil },
		Read:   func(_ context.Context, use func(*journal.Reader) error) error { return use(d.Reader) },
	}
	names := func() string {
		t.Helper()
		s, err := c.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, k := range s.All() {
			_, former, err := s.Find(k.Name)
			all = append(all, fmt.Sprint(k.Name, " ", k.State, " ", former, " ", err))
		}
		return fmt.Sprint(strings.Join(all, "; "), "; ", len(s.Streams), " streams, ", s.Idle)
	}
	status = control.Status{Sinks: []control.Sink{{Name: "up", State: "running"}}, Left: []string{"hook"}}
	if got := names(); got != "up running false <nil>; hook stopped true <nil>; 0 streams, <nil>" {
		t.Error(got)
	}
	status, down = control.Status{}, control.ErrSilent
	if got := names(); got != "hook stopped false <nil>; log paused false <nil>; 1 streams, it does not answer" {
		t.Error(got)
	}
	if all, err := c.Letters(ctx, "hook", 1, 1); err != nil || len(all) != 1 || all[0].ID != ids[1] || all[0].Name != "c2" {
		t.Errorf("%+v, %v", all, err)
	}
	if all, newest, err := c.Aside(ctx, "hook", epoch.Add(time.Second)); err != nil || len(all) != 2 || !newest.Equal(epoch.Add(time.Second)) {
		t.Errorf("%+v, %s, %v", all, newest, err)
	}
	if l, err := c.Letter(ctx, "hook", ids[0]); err != nil || l.Name != "c1" {
		t.Errorf("%+v, %v", l, err)
	}
	if seq, seen, err := c.After(ctx, epoch.Add(90*time.Second)); err != nil || seq != 2 || !seen.Equal(epoch.Add(2*time.Minute)) {
		t.Errorf("%d, %s, %v", seq, seen, err)
	}
	if _, err := c.Give(ctx, Order{Do: Pause, Sink: "hook"}); !errors.Is(err, control.ErrStarting) {
		t.Errorf("the daemon does not take orders yet: %v", err)
	}
}

// TestThrough: without a daemon, an order is carried out on the journal itself, if there is one.
func TestThrough(t *testing.T) {
	path, _ := recorded(t, 2)
	order := &Order{Do: Pause, Sink: "hook"}
	give := func(path string) (text []string, err error) {
		err = Through(t.Context(), path, func(to control.Orders, live bool) error {
			done, err := order.Give(t.Context(), to, live)
			text = done.Text
			return err
		})
		return text, err
	}
	var refusal *control.Refusal
	if _, err := give(path); !errors.As(err, &refusal) {
		t.Errorf("an unknown sink: %v", err)
	}
	for _, missing := range []string{filepath.Join(t.TempDir(), "none.db"), t.TempDir()} {
		if _, err := give(missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", missing, err)
		}
	}
	order.Do = "stop"
	if _, err := give(path); !errors.As(err, &refusal) || !strings.Contains(err.Error(), `there is no order "stop"`) {
		t.Errorf("an unknown order: %v", err)
	}
}
