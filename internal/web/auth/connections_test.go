package auth

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
)

// TestConnections: connections that send nothing cannot take all memory and file descriptors. Further ones end at once, which
// the log counts, and others are served as soon as one ends.
func TestConnections(t *testing.T) {
	log, text := logged()
	a := mustNew(t, Options{Log: log})
	a.connections = 3
	a.timeouts.header = time.Minute // a connection that ended meanwhile would make room
	address := served(t, a, hello)
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	// ask returns what a connection is answered; empty if it was closed.
	ask := func(c net.Conn) string {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+address+"\r\nConnection: close\r\n\r\n") // the answer says whether it arrived
		all, _ := io.ReadAll(c)
		status, _, _ := strings.Cut(string(all), "\r\n")
		return status
	}
	var idle []net.Conn
	for range a.connections {
		idle = append(idle, dial())
	}
	for range 5 {
		if got := ask(dial()); got != "" {
			t.Errorf("one too many: %s", got)
		}
	}
	if n := strings.Count(text.String(), "connections to the web page refused: too many are open"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, text)
	}
	if got := refusals(a); got != "connections 5" {
		t.Errorf("counted: %s", got)
	}
	_ = idle[0].Close()
	end := time.Now().Add(time.Minute)
	for got := ""; got != "HTTP/1.1 200 OK"; got = ask(dial()) { // the server learns of the end later
		if time.Now().After(end) {
			t.Fatal("no connection is accepted after one has ended")
		}
		<-time.After(time.Millisecond)
	}
	if got := ask(idle[1]); got != "HTTP/1.1 200 OK" {
		t.Errorf("an accepted one: %s", got)
	}
}

// TestManyStreams: a viewer with many live pages can still open other pages, and another viewer has live pages.
func TestManyStreams(t *testing.T) {
	f := &fake{tokens: map[string]authentication.UserInfo{"alice": {Username: "alice"}, "bob": {Username: "bob"}}}
	a := mustNew(t, Options{Address: "localhost:80", Tokens: true, Reviewer: f})
	var open []*Stream
	begin := func(token string) (s *Stream, err error) {
		a.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s, err = NewStream(w, r) })).
			ServeHTTP(streamWriter{httptest.NewRecorder()}, request(t, "GET", "localhost", nil, "Authorization: Bearer "+token))
		return s, err
	}
	for range maxStreams {
		s, err := begin("alice")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	if _, err := begin("alice"); !errors.Is(err, ErrStreams) {
		t.Errorf("one too many: %v", err)
	}
	if maxStreams >= maxPerViewer {
		t.Error("live pages can take every request of a viewer")
	}
	s, err := begin("bob")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(open, s, open[0]) { // closing twice counts once
		s.Close()
	}
	if len(a.streams.used) != 0 {
		t.Errorf("after the end: %v", a.streams.used)
	}
}

// refusals describes what was refused.
func refusals(a *Auth) string {
	var all []string
	for _, r := range a.Refusals().All() {
		if r.Count > 0 {
			all = append(all, fmt.Sprint(r.Reason, " ", r.Count))
		}
	}
	return strings.Join(all, ", ")
}

// TestRefusals: each refusal is counted with its reason. Those of a limit are in the log, which counts them at most once a
// minute.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := logged()
		f := &fake{tokens: map[string]authentication.UserInfo{"alice": {Username: "alice"}, "bob": {Username: "bob"}}}
		a := mustNew(t, Options{Address: "localhost:80", Tokens: true, Reviewer: f, Log: log})
		if got := len(a.Refusals().All()); got != len(reasons) {
			t.Errorf("%d of %d reasons are counted at the start", got, len(reasons))
		}
		ask := func(host, token string) int {
			return answered(a, request(t, "GET", host, nil, "Authorization: Bearer "+token)).Code
		}
		full := func(do func()) { // while no further request is answered
			for range cap(a.requests) {
				a.requests <- struct{}{}
			}
			do()
			for range cap(a.requests) {
				<-a.requests
			}
		}
		for range 3 {
			full(func() {
				if code := ask("localhost", "alice"); code != http.StatusServiceUnavailable {
					t.Errorf("too many requests: %d", code)
				}
			})
		}
		if code := ask("elsewhere.example.com", "alice"); code != http.StatusMisdirectedRequest {
			t.Errorf("another host: %d", code)
		}
		if code := ask("localhost", "stranger"); code != http.StatusUnauthorized {
			t.Errorf("a token that is not valid: %d", code)
		}
		for range maxPerViewer {
			a.viewers.enter("someone")
		}
		if code := ask("localhost", "alice"); code != http.StatusOK {
			t.Errorf("alice: %d", code)
		}
		f.err = errors.New("the API server is away")
		if code := ask("localhost", "bob"); code != http.StatusServiceUnavailable {
			t.Errorf("without an API server: %d", code)
		}
		if got := refusals(a); got != "requests 3, credentials 1, review 1, site 1" {
			t.Errorf("counted: %s", got)
		}
		if n := strings.Count(text.String(), "requests to the web page refused: too many are being answered"); n != 1 || !strings.Contains(text.String(), "refused=1") {
			t.Errorf("%d lines in the log: %s", n, text)
		}
		time.Sleep(refusalsEvery) // in the bubble
		full(func() { ask("localhost", "alice") })
		if !strings.Contains(text.String(), "refused=3") {
			t.Errorf("the log does not count what it left out: %s", text)
		}
	})
}
