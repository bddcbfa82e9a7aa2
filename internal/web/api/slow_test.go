package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/web/api"
)

// unread is an answer that its client does not read until read is closed.
type unread struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (u unread) Write(b []byte) (int, error) {
	<-u.read
	return u.ResponseRecorder.Write(b)
}

type whoKey struct{}

// TestSlowReaders: clients that do not read their answers keep nobody else from theirs.
func TestSlowReaders(t *testing.T) {
	s := open(t)
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		h := serve(t, s, access.Everything{}, func(o *api.Options) {
			o.Expensive = 1
			o.RefusedStream = func() { refused++ }
			o.Viewer = func(ctx context.Context) string { return ctx.Value(whoKey{}).(string) }
		})
		const stream = "raw/states?at=2026-03-01T10:05:00Z"
		ask := func(w http.ResponseWriter, who, path string) {
			ctx := context.WithValue(t.Context(), whoKey{}, who)
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, api.Root+path, nil))
		}
		read, done := make(chan struct{}), make(chan struct{})
		for _, path := range []string{"changes", "objects", stream} {
			go func() {
				ask(unread{httptest.NewRecorder(), read}, "slow", path)
				done <- struct{}{}
			}()
			synctest.Wait() // it does not read
		}
		for _, tc := range []struct {
			who, path string
			want      int
		}{
			{"slow", "changes", http.StatusOK},
			{"other", "changes", http.StatusOK},
			{"slow", stream, http.StatusServiceUnavailable},
			{"other", stream, http.StatusOK},
		} {
			w := httptest.NewRecorder()
			ask(w, tc.who, tc.path)
			if w.Code != tc.want {
				t.Errorf("%s asks for %s: %d, want %d: %s", tc.who, tc.path, w.Code, tc.want, w.Body)
			}
			if w.Code != http.StatusOK && w.Header().Get("Retry-After") == "" {
				t.Error("a refusal does not say when to come again")
			}
		}
		if refused != 1 {
			t.Errorf("%d refusals are counted", refused)
		}
		close(read)
		for range 3 {
			<-done
		}
		w := httptest.NewRecorder()
		if ask(w, "slow", stream); w.Code != http.StatusOK {
			t.Errorf("afterwards: %d %s", w.Code, w.Body)
		}
	})
}
