package torture

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// hookSecret signs the messages to receivers.
const hookSecret = "a secret of the torture"

// receiver is a webhook with random responses.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	rng     *rand.Rand
	calm    bool          // always 200, at once
	pause   time.Duration // before each response until then
	behind  *receiver     // until then, it takes a quarter of what that one has at most
	got     []receipt
	answers map[string]int
	errs    []error
	closed  chan struct{}
}

func newReceiver(t *testing.T, rng *rand.Rand) *receiver {
	t.Helper()
	r := &receiver{rng: rng, answers: map[string]int{}, closed: make(chan struct{})}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		close(r.closed)
		r.Server.CloseClientConnections()
		r.Server.Close()
	})
	return r
}

// ServeHTTP accepts a message or not, and responds truthfully or not.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed: an incomplete message
	}
	pause(req.Context(), r.paused())
	for r.ahead() {
		pause(req.Context(), pollInterval)
		if req.Context().Err() != nil {
			return
		}
	}
	switch answer := r.take(req, body); answer {
	case "ok":
	case "500", "500, but taken":
		http.Error(w, "no", http.StatusInternalServerError)
	case "429":
		w.Header().Set("Retry-After", "1")
		http.Error(w, "later", http.StatusTooManyRequests)
	case "hang":
		select {
		case <-req.Context().Done():
		case <-r.closed:
		}
	default: // a reset
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			reset(c)
		}
	}
}

// take chooses the response and stores an accepted message.
func (r *receiver) take(req *http.Request, body []byte) (answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := signed(req, body); err != nil {
		r.errs = append(r.errs, err)
	}
	answer = "ok"
	if !r.calm {
		switch n := r.rng.IntN(200); {
		case n < 8:
			answer = "500"
		case n < 12:
			answer = "500, but taken"
		case n < 14:
			answer = "429"
		case n < 16:
			answer = "hang"
		case n < 22:
			answer = "reset"
		case n < 26:
			answer = "reset, but taken"
		}
	}
	r.answers[answer]++
	switch answer {
	case "ok", "500, but taken", "reset, but taken":
		r.got = append(r.got, receipt{body})
	}
	return answer
}

// signed checks the signature as specified by https://www.standardwebhooks.com.
func signed(req *http.Request, body []byte) error {
	h := req.Header
	mac := hmac.New(sha256.New, []byte(hookSecret))
	fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if got := h.Get("webhook-signature"); got != want {
		return fmt.Errorf("the signature of %s is %q, want %q", h.Get("webhook-id"), got, want)
	}
	return nil
}

// calmDown makes it respond with 200 from now on.
func (r *receiver) calmDown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calm = true
}

// paused is the delay of a response.
func (r *receiver) paused() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calm {
		return 0
	}
	return r.pause
}

// ahead reports whether it may not take another message now.
func (r *receiver) ahead() bool {
	r.mu.Lock()
	calm, got := r.calm, len(r.got)
	r.mu.Unlock()
	return !calm && r.behind != nil && got > len(r.behind.receipts())/4
}

func (r *receiver) receipts() []receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[:len(r.got):len(r.got)]
}

// hookTimeout is the daemon's timeout for responses.
const hookTimeout = 500 * time.Millisecond
