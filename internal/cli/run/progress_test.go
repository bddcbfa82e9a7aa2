package run

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/control"
)

func TestProgress(t *testing.T) {
	looks := []control.Status{
		{Cluster: "prod", Starting: "opening the journal"},
		{Cluster: "prod"},
		{Cluster: "prod", Streams: []control.Stream{{State: control.Live, Objects: 20}, {State: control.Listing, Objects: 3}}},
		{Cluster: "prod", Settled: true},
	}
	for _, tc := range []struct {
		why   string
		early bool
		want  []string
	}{
		{"a start", true, []string{"prod: opening the journal …", "prod: asking the server for its kinds …", "prod: 1 of 2 streams live, 23 objects …"}},
		{"a credential plugin may ask", false, []string{"prod: opening the journal …", "prod: 1 of 2 streams live, 23 objects …"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var screen bytes.Buffer
			n, ended := 0, false
			ctx, cancel := context.WithCancel(t.Context())
			p := progress(terminal.NewStatus(&screen, true), tc.early, func(ctx context.Context, _ func(context.Context) (control.Status, error)) error {
				<-ctx.Done() // the other server continues
				ended = true
				return nil
			})
			err := p(ctx, func(context.Context) (control.Status, error) {
				if n++; n == len(looks) {
					cancel()
				}
				return looks[n-1], nil
			})
			if err != nil || !ended {
				t.Errorf("%s: %v, ended: %t", tc.why, err, ended)
			}
			var want strings.Builder
			for _, line := range tc.want {
				want.WriteString(terminal.EraseLine + terminal.NoWrap + line + terminal.Wrap)
			}
			want.WriteString(terminal.EraseLine)
			if got := screen.String(); got != want.String() {
				t.Errorf("%s: got %q, want %q", tc.why, got, want.String())
			}
		})
	}
}

// TestProgressOfFailure checks that the daemon learns at once that a server has ended, also while the start does not settle.
func TestProgressOfFailure(t *testing.T) {
	var screen bytes.Buffer
	broken := errors.New("broken")
	p := progress(terminal.NewStatus(&screen, true), true, func(context.Context, func(context.Context) (control.Status, error)) error {
		return broken
	})
	err := p(t.Context(), func(context.Context) (control.Status, error) { return control.Status{Cluster: "prod"}, nil })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}
