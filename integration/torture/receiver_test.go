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

// hookSecret signs what is sent to receivers.
const hookSecret = "a secret of the torture"

// receiver is a webhook that answers as it likes.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	rng     *rand.Rand
	calm    bool          // it answers 200 at once
	pause   time.Duration // before each answer until then
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

// ServeHTTP takes a message, or not, and says so, or something else.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed: it is no message
	}
	rest(req.Context(), r.paused())
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
			snap(c)
		}
	}
}

// take chooses the answer, and keeps what is taken.
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

// signed checks the signature as https://www.standardwebhooks.com has it.
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

// soothe makes it answer 200 from now on.
func (r *receiver) soothe() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calm = true
}

// paused is how long it takes to answer.
func (r *receiver) paused() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calm {
		return 0
	}
	return r.pause
}

func (r *receiver) receipts() []receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[:len(r.got):len(r.got)]
}

// hookTimeout is how long the daemon waits for an answer.
const hookTimeout = 500 * time.Millisecond
