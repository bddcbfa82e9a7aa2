package api_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/web/api"
	"github.com/tattler-dev/tattler/internal/web/auth"
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

// slowFor is an Access that does not answer about one viewer until its channel is closed.
type slowFor struct {
	who     string
	answers chan struct{}
}

func (s slowFor) May(ctx context.Context, targets []access.Target) ([]bool, error) {
	if ctx.Value(whoKey{}) == s.who {
		select {
		case <-s.answers:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return access.Everything{}.May(ctx, targets)
}

func (slowFor) Created(ctx context.Context, namespaces []access.Namespace) ([]time.Time, error) {
	return access.Everything{}.Created(ctx, namespaces)
}

// TestShareOfRequests: a viewer whose requests take long leaves half of the places to others.
func TestShareOfRequests(t *testing.T) {
	s := open(t)
	synctest.Test(t, func(t *testing.T) {
		slow := slowFor{"slow", make(chan struct{})}
		h := serve(t, s, slow, func(o *api.Options) {
			o.Viewer = func(ctx context.Context) string { return ctx.Value(whoKey{}).(string) }
		})
		ask := func(who string) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(context.WithValue(t.Context(), whoKey{}, who), http.MethodGet, api.Root+"changes", nil))
			return w.Code
		}
		const requests = 8
		codes := make(chan int)
		for range requests {
			go func() { codes <- ask("slow") }()
		}
		synctest.Wait()
		began := time.Now()
		if code := ask("other"); code != http.StatusOK || !time.Now().Equal(began) {
			t.Errorf("another viewer: %d after %v", code, time.Since(began))
		}
		time.Sleep(10 * time.Second) // the others are refused meanwhile
		close(slow.answers)
		count := map[int]int{}
		for range requests {
			count[<-codes]++
		}
		if count[http.StatusOK] != 2 || count[http.StatusServiceUnavailable] != requests-2 {
			t.Errorf("the slow viewer's answers: %v", count)
		}
	})
}

// manyReviews is an Access that needs too many reviews.
type manyReviews struct{}

func (manyReviews) May(context.Context, []access.Target) ([]bool, error) {
	return nil, &auth.TooManyReviews{Needed: 501, Limit: 500}
}

func (manyReviews) Created(context.Context, []access.Namespace) ([]time.Time, error) {
	return nil, &auth.TooManyReviews{Needed: 501, Limit: 500}
}

// TestTooManyReviews: repeating such a request does not help, and the log of the daemon is not the viewer's to fill.
func TestTooManyReviews(t *testing.T) {
	var log bytes.Buffer
	h := serve(t, open(t), manyReviews{}, func(o *api.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	code, text := body(t, h, "changes")
	if want := `{"error":"this needs more than the 500 access reviews that a request may make: choose a namespace, or fewer kinds"}` + "\n"; code != http.StatusBadRequest || text != want {
		t.Errorf("%d %s", code, text)
	}
	if log.Len() > 0 {
		t.Errorf("it logs %s", &log)
	}
}
