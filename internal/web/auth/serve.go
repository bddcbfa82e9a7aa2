package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/internal/access"
)

// Wrap protects a handler. It answers requests of other sites, for other hosts and without valid credentials
// itself; the handler gets the rest, without the credentials, with a limited body. The context has the *Viewer (From),
// which is also what an access.Source asks. Wrap limits how many requests are answered at once, and logs each POST:
// the viewer, the path and the result.
//
// The handler must change state only for POST; take objects from an access.Source, or check each by Viewer.May; check
// every status page by Viewer.MayDo; and use NewStream for answers that last.
func (a *Auth) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		select {
		case a.requests <- struct{}{}:
			defer func() { <-a.requests }()
		default:
			a.refusals.Add(RefusedRequests)
			answer(w, &problem{http.StatusServiceUnavailable, "too many requests are being answered already"})
			return
		}
		if p := a.check(r); p != nil {
			a.refusals.Add(RefusedSite)
			answer(w, p)
			return
		}
		v, p := a.viewer(r)
		if p != nil {
			reason := RefusedReview
			if p.code == http.StatusUnauthorized {
				reason = RefusedCredentials
			}
			a.refusals.Add(reason)
			if p.code == http.StatusUnauthorized && a.o.Tokens {
				w.Header().Set("WWW-Authenticate", `Bearer realm="tattler"`)
			}
			answer(w, p)
			return
		}
		if !a.viewers.enter(v.key) {
			a.refusals.Add(RefusedViewerRequests)
			answer(w, &problem{http.StatusTooManyRequests, fmt.Sprintf("%d of your requests are being answered already", maxPerViewer)})
			return
		}
		defer a.viewers.leave(v.key)
		a.serve(w, a.stripped(r, v), v, next)
	})
}

func (a *Auth) viewer(r *http.Request) (*Viewer, *problem) {
	if a.open {
		return &Viewer{all: true, timeout: a.timeouts.write, streams: &a.streams}, nil
	}
	id, err := a.identify(r.Context(), r)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		a.log.Debug("request refused", "why", refused.text, "from", r.RemoteAddr)
		return nil, &problem{http.StatusUnauthorized, refused.text}
	case err != nil: // the log has the details
		return nil, &problem{http.StatusServiceUnavailable, "credentials cannot be verified: the API server does not answer, or does not let Tattler ask; its log says why"}
	}
	v := &Viewer{User: id.User, UID: id.UID, Groups: id.Groups, Extra: id.Extra, key: id.key(), rights: a.rights, timeout: a.timeouts.write, streams: &a.streams}
	v.again = func(ctx context.Context) error {
		now, err := a.identify(ctx, r)
		if err == nil && now.key() != v.key {
			err = refuse("the credential belongs to someone else now")
		}
		return err
	}
	return v, nil
}

// stripped returns the request for the handler: without credentials, which it cannot leak then.
func (a *Auth) stripped(r *http.Request, v *Viewer) *http.Request {
	out := r.WithContext(access.With(context.WithValue(r.Context(), viewerKey{}, v), v))
	out.Header = r.Header.Clone()
	out.Header.Del("Authorization")
	for name := range out.Header {
		if a.o.RequestHeader.identityHeader(name) {
			delete(out.Header, name)
		}
	}
	return out
}

func (a *Auth) serve(w http.ResponseWriter, r *http.Request, v *Viewer, next http.Handler) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if r.Method != http.MethodPost {
		next.ServeHTTP(w, r)
		return
	}
	kept, began := &statusWriter{ResponseWriter: w, status: http.StatusInternalServerError}, time.Now() // the status if it panics
	defer func() {
		args := append([]any{"viewer", v.String(), "path", r.URL.Path, "status", kept.status, "took", time.Since(began)}, v.noted()...)
		a.log.Info("web request that changes state", args...)
	}()
	next.ServeHTTP(kept, r)
	if !kept.wrote {
		kept.status = http.StatusOK
	}
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *statusWriter) WriteHeader(code int) {
	if !w.wrote && code >= 200 {
		w.status, w.wrote = code, true
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if !w.wrote {
		w.status, w.wrote = http.StatusOK, true
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func answer(w http.ResponseWriter, p *problem) {
	switch p.code {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", "GET, HEAD, POST")
	}
	http.Error(w, p.text, p.code)
}

// Serve wraps the handler and answers until ctx ends, then returns nil within seconds. It closes the listener. An
// error is the listener's, or reports an open page on an address that other machines reach.
func (a *Auth) Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	defer l.Close()
	l = &connections{Listener: l, refusals: &a.refusals, limit: a.connections}
	if (a.open || a.pair == nil) && !isLoopback(l.Addr().String()) {
		return fmt.Errorf("serve the web page on %s: other machines can reach this address, and the page has no TLS or no authentication", l.Addr())
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	active := &activity{next: a.Wrap(h)}
	srv := a.server(context.WithValue(serving, endKey{}, ctx), active)
	failed := make(chan error, 1)
	go func() {
		if srv.TLSConfig != nil {
			failed <- srv.ServeTLS(l, "", "")
		} else {
			failed <- srv.Serve(l)
		}
	}()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		parting, stop := context.WithTimeout(serving, a.timeouts.grace)
		_ = srv.Shutdown(parting) // Close ends what it did not wait for
		stop()
		err = <-failed
	}
	cancel()
	_ = srv.Close() // nothing is being sent that could be lost
	active.wait(a.timeouts.grace)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the web page on %s: %w", l.Addr(), err)
}

func (a *Auth) server(base context.Context, h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, TLSConfig: a.TLSConfig(),
		ReadHeaderTimeout: a.timeouts.header, ReadTimeout: a.timeouts.read, WriteTimeout: a.timeouts.write, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: 100},
		ErrorLog:    slog.NewLogLogger(a.log.Handler(), slog.LevelDebug), // clients cause them
		BaseContext: func(net.Listener) context.Context { return base },
	}
}

// TLSConfig returns the server's configuration, which follows the files; nil without a certificate.
func (a *Auth) TLSConfig() *tls.Config {
	if a.pair == nil {
		return nil
	}
	base := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &a.pair.get().tls, nil },
	}
	if a.clientCA == nil && a.proxyCA == nil {
		return base
	}
	// Certificates are verified for each request, which can say what is wrong, and follows the files. The CAs
	// here are only named to clients, so that a browser offers the right certificates.
	base.ClientAuth = tls.RequestClientCert
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := base.Clone()
		c.GetConfigForClient = nil
		c.ClientCAs = x509.NewCertPool()
		for _, b := range []*reloaded[*bundle]{a.clientCA, a.proxyCA} {
			if b != nil {
				for _, cert := range b.get().certs {
					c.ClientCAs.AddCert(cert)
				}
			}
		}
		return c, nil
	}
	return base
}

// activity counts the requests of a server, so that it can wait for their end.
type activity struct {
	next    http.Handler
	mu      sync.Mutex // makes ending and adding to active atomic
	closing bool
	active  sync.WaitGroup
}

// ServeHTTP implements http.Handler.
func (a *activity) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	if a.closing {
		a.mu.Unlock()
		return // no one is waiting for the answer
	}
	a.active.Add(1)
	a.mu.Unlock()
	defer a.active.Done()
	a.next.ServeHTTP(w, r)
}

func (a *activity) wait(most time.Duration) {
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.active.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(most):
	}
}
