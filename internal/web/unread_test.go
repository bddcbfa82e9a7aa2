package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
)

// unread is a journal whose objects cannot be read.
type unread struct {
	history.Source
	err error
}

func (u *unread) Rows(ctx context.Context, q journal.Query) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range u.Source.Rows(ctx, q) {
			e.ReadFrom(u)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (u *unread) Contents(context.Context, *journal.Entry) (before, after []byte, err error) {
	return nil, nil, u.err
}

// TestUnread: only a damaged change is shown as such. After any other failure to read one, the page fails.
func TestUnread(t *testing.T) {
	b := versioned(t, 6)
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why  string
		err  error
		code int
	}{
		{"damage", fmt.Errorf("read: %w", &journal.DamagedError{What: "change 1", Err: errors.New("its checksum is wrong")}), http.StatusOK},
		{"a busy file", &journal.WriteError{Op: "read", Err: errors.New("database is locked")}, http.StatusInternalServerError},
		{"a closed journal", journal.ErrClosed, http.StatusInternalServerError},
		{"rights that cannot be reviewed", &access.CheckError{}, http.StatusServiceUnavailable},
	} {
		for _, url := range []string{"/?flat=1", "/", "/?path=data"} { // the last one reads objects to select changes
			p := newPage(t, b.path, b.at)
			var err error
			if p.past, err = newPast(&unread{p.past.source, tc.err}); err != nil {
				t.Fatal(err)
			}
			w := p.get(url)
			if says := strings.Contains(w.Body.String(), "cannot be shown"); w.Code != tc.code || says != (tc.code == http.StatusOK) {
				t.Errorf("%s, %s: %d, reports damaged changes: %t", tc.why, url, w.Code, says)
			}
		}
	}
}
