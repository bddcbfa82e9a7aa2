package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// changes passes each change to handle, once.
func changes(secret []byte, seen *event.Dedup, handle func(event.Event) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		id, stamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
		sent, _ := strconv.ParseInt(stamp, 10, 64)
		signature := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if time.Since(time.Unix(sent, 0)).Abs() > 5*time.Minute || !hmac.Equal([]byte(signature), []byte(r.Header.Get("webhook-signature"))) {
			http.Error(w, "the signature is wrong", http.StatusUnauthorized)
			return
		}
		var e event.Event
		if err := json.Unmarshal(body, &e); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if !seen.Seen(e.ID) { // otherwise it is a repeat
			if err := handle(e); err != nil {
				seen.Forget(e.ID)
				http.Error(w, err.Error(), http.StatusInternalServerError) // it is sent again
				return
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// TestPage runs the receiver in docs/sinks/webhook.md: it takes each change once, even after an error of handle, and
// nothing without a valid signature.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/sinks/webhook.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("page_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	if shown == "" || !strings.Contains(string(source), shown) {
		t.Error("the page shows another receiver than this test has")
	}

	var got []string
	fails := 1
	server := httptest.NewServer(changes([]byte("a secret of ours"), event.NewDedup(100), func(e event.Event) error {
		if fails--; fails == 0 {
			return errors.New("busy")
		}
		got = append(got, e.Data.Resource.Name)
		return nil
	}))
	defer server.Close()
	message := func(name string) sink.Message {
		e := event.New("prod", time.Unix(1, 0), event.Data{Op: event.Created, Resource: event.Resource{Version: "v1", Resource: "pods", Name: name, UID: name}})
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return sink.Message{ID: e.ID, Key: name, Event: &e, Body: body}
	}
	send := func(secret string, want bool, ms ...sink.Message) {
		t.Helper()
		s, err := New("test", Options{URL: server.URL, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		if n, err := s.Send(t.Context(), ms); (err == nil) != want || want && n != len(ms) {
			t.Errorf("%d sent: %v", n, err)
		}
	}
	a, b := message("a"), message("b")
	send("another one", false, a)
	send("a secret of ours", false, a)
	send("a secret of ours", true, a, b, a)
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("it got %v", got)
	}
}
