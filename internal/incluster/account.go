package incluster

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// tokenTime is the shortest time for which API servers issue tokens.
	tokenTime = 10 * time.Minute
	// renewTime is how long before its end a token is replaced.
	renewTime = 2 * time.Minute
)

// account sends tokens of a ServiceAccount that only the daemon accepts.
type account struct {
	api             *server
	namespace, name string

	mu    sync.Mutex
	token string
	until time.Time
}

func newAccount(api *server, name string) (*account, error) {
	namespace, name, err := split(name, "--daemon-account")
	return &account{api: api, namespace: namespace, name: name}, err
}

// current returns a token that is valid for some time.
func (a *account) current(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Until(a.until) > renewTime {
		return a.token, nil
	}
	t, err := a.api.token(ctx, a.namespace, a.name)
	if err == nil {
		a.token, a.until = t.Token, t.ExpirationTimestamp.Time
	}
	return a.token, err
}

func (a *account) wrap(rt http.RoundTripper) http.RoundTripper { return &sending{a, rt} }

type sending struct {
	*account
	rt http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s *sending) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := s.current(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return s.rt.RoundTrip(r)
}

// CloseIdleConnections closes those below.
func (s *sending) CloseIdleConnections() {
	if c, ok := s.rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
