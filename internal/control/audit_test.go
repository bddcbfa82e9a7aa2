package control

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// hanging are orders that do not end by themselves.
type hanging struct{ Orders }

func (hanging) Pause(ctx context.Context, _ string, _ bool) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestOrderThatTakesTooLong: a sink that hangs does not hang the caller.
func TestOrderThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, a := time.Now(), NewAudit(hanging{}, nil)
		err := a.Pause(t.Context(), "hook", true)
		if err == nil || !strings.Contains(err.Error(), "try again") || time.Since(began) != orderTime {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if c := a.Counts()[0]; c != (OrderCount{Order: "pause", Failed: 1}) {
			t.Errorf("%+v", c)
		}
	})
	if err := busy(&fs.PathError{Op: "read", Path: "p", Err: os.ErrDeadlineExceeded}); strings.Contains(err.Error(), "try again") {
		t.Errorf("another deadline: %v", err)
	}
}

// TestAudit: each order is logged with who gave it, and counted by its result.
func TestAudit(t *testing.T) {
	var out bytes.Buffer
	to := &orders{}
	a := NewAudit(to, slog.New(slog.NewTextHandler(&out, nil)))
	ctx := By(t.Context(), "alice\nlevel=INFO")
	for _, tc := range []struct {
		give func() error
		err  error
		line string
		want OrderCount
	}{
		{func() error { return a.Pause(ctx, "hook", true) }, nil, `level=INFO msg="order carried out" order=pause sink=hook by="alice\nlevel=INFO"`, OrderCount{"pause", 1, 0, 0}},
		{func() error { return a.Pause(ctx, "hook", false) }, Refuse("no sink"), `level=WARN msg="order refused" order=resume sink=hook by="alice\nlevel=INFO" error="no sink"`, OrderCount{"resume", 0, 1, 0}},
		{func() error { return second(a.Replay(ctx, "hook", Place{})) }, nil, `order=replay sink=hook by="alice\nlevel=INFO" changes=3`, OrderCount{"replay", 1, 0, 0}},
		{func() error { return second(a.Skip(ctx, "hook", "i")) }, nil, `order=skip sink=hook by="alice\nlevel=INFO" change=i`, OrderCount{"skip", 1, 0, 0}},
		{func() error { return second(a.ReplayDead(ctx, "hook", []string{"a", "b"})) }, errors.New("gone"), `level=WARN msg="order failed" order="replay dead letters" sink=hook by="alice\nlevel=INFO" letters=2 accepted=1 error=gone`, OrderCount{"replay dead letters", 0, 0, 1}},
		{func() error { return second(a.DropDead(ctx, "hook", []string{"a", "b"})) }, nil, `order="drop dead letters" sink=hook by="alice\nlevel=INFO" letters=2`, OrderCount{"drop dead letters", 1, 0, 0}},
		{func() error { return a.Remove(ctx, "hook") }, nil, `order=remove sink=hook`, OrderCount{"remove", 1, 0, 0}},
	} {
		out.Reset()
		to.err = tc.err
		if err := tc.give(); !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", tc.want.Order, err, tc.err)
		}
		if !strings.Contains(out.String(), tc.line) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s is logged as %s", tc.want.Order, out.String())
		}
		found := false
		for _, c := range a.Counts() {
			found = found || c == tc.want
		}
		if !found {
			t.Errorf("no %+v in %+v", tc.want, a.Counts())
		}
	}
}

// TestGivenBy: the daemon learns over the socket who gives an order.
func TestGivenBy(t *testing.T) {
	by := make(chan string, 1)
	for given, want := range map[string]string{
		"tattler ui": "tattler ui", "zoë\r\nX: y": "zoë\r\nX: y", "": "an unnamed process of this user", strings.Repeat("a", 300): strings.Repeat("a", maxBy),
	} {
		c := served(t, inDir(t), noting{by: by})
		if err := c.Remove(By(t.Context(), given), "hook"); err != nil {
			t.Fatal(err)
		}
		if got := <-by; got != want {
			t.Errorf("%q became %q", given, got)
		}
	}
}

// noting are orders that report who gives them.
type noting struct {
	Orders
	by chan string
}

func (n noting) Remove(ctx context.Context, _ string) error {
	n.by <- GivenBy(ctx)
	return nil
}
