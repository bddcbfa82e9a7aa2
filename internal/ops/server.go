// Package ops is the HTTP server for platforms: metrics for Prometheus, health for Kubernetes, and profiles for
// developers.
//
//	/metrics       the metrics of docs/metrics.md, and those of Go and of the process
//	/healthz       200 unless a restart would help
//	/readyz        200 while everything that should be recorded is; else 503 and the reasons, one per line
//	/debug/pprof/  Go's profiles, if enabled, on a loopback address only
//
// It is derived from control.Status alone. The endpoint is not authenticated, so it only reveals what everyone
// who reaches the port may know: numbers, and the names of kinds and sinks; no objects, namespaces or server
// errors. It speaks plain HTTP.
package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tattler-dev/tattler/internal/control"
)

// Options configure the server.
type Options struct {
	// Status is called for each answer, by one goroutine at a time. Its context ends after some seconds; the
	// caller gets an error then.
	Status func(context.Context) (control.Status, error)
	// Address is the configured one. On a loopback address, only requests for its host, or for a loopback name
	// or address, are answered.
	Address string
	// Pprof enables the profiles.
	Pprof bool
	// Log receives failures; nil discards them.
	Log *slog.Logger
}

// Limits of what clients can use.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 15 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	// maxProfile is how long a profile may take; the default takes 30 s.
	maxProfile = 5 * time.Minute
	// maxScrapes is how many scrapes are answered at once; usually there are one or two Prometheus servers.
	maxScrapes = 4
	// grace is how long requests may take to end when the server does.
	grace = 2 * time.Second
)

// Serve answers until ctx ends, then returns nil within seconds, with all its goroutines ended, except a Status
// that ignores its context. It closes the listener. An error is the listener's, or reports profiles on an
// address that other machines reach.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	defer l.Close()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	local := isLoopback(l.Addr())
	if o.Pprof && !local {
		return fmt.Errorf("serve %s: %w", l.Addr(), errExposed)
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	h := newHandler(serving, o, local)
	srv := newServer(serving, h, o)
	o.Log.Info("serving metrics and health", "address", l.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		parting, stop := context.WithTimeout(serving, grace)
		_ = srv.Shutdown(parting) // Close ends what it did not wait for
		stop()
		err = <-failed
	}
	cancel()
	_ = srv.Close() // nothing is being sent that could be lost
	h.wait(grace)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", l.Addr(), err)
}

func newServer(serving context.Context, h http.Handler, o Options) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true,
		ErrorLog:    slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return serving },
	}
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// handler answers requests.
type handler struct {
	next    http.Handler
	asker   *asker
	process *prometheus.Registry // metrics that need no status
	scrapes chan struct{}        // has an element for each scrape
	hosts   []string             // that are answered; nil: all

	mu      sync.Mutex // makes ending and adding to active atomic
	closing bool
	active  sync.WaitGroup
}

func newHandler(end context.Context, o Options, local bool) *handler {
	h := &handler{
		asker:   &asker{ask: o.Status, end: end, log: o.Log},
		process: prometheus.NewRegistry(),
		scrapes: make(chan struct{}, maxScrapes),
	}
	h.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if local {
		h.hosts = []string{"localhost"}
		if host, _, err := net.SplitHostPort(o.Address); err == nil && host != "" {
			h.hosts = append(h.hosts, host)
		}
	}
	mux := http.NewServeMux()
	index := "tattler run\n\n/metrics  for Prometheus\n/healthz  ok, unless a restart would help\n/readyz   ok, or what is not recorded that should be\n"
	mux.HandleFunc("GET /metrics", h.metrics)
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	if o.Pprof {
		index += "/debug/pprof/  Go's profiles\n"
		// Without its cmdline: an argument may hold a credential.
		mux.HandleFunc("GET /debug/pprof/", bounded(pprof.Index))
		mux.HandleFunc("GET /debug/pprof/profile", bounded(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", bounded(pprof.Trace))
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, index) })
	h.next = mux
	return h
}

// ServeHTTP refuses requests that are not for this server, and answers the rest.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.enter() {
		return // no one is waiting for the answer
	}
	defer h.active.Done()
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if !h.serves(r.Host) {
		refuse(w, http.StatusMisdirectedRequest, "this server is for loopback names and addresses, such as localhost")
		return
	}
	h.next.ServeHTTP(w, r)
}

// enter counts a request; false means that the server has ended.
func (h *handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closing {
		h.active.Add(1)
	}
	return !h.closing
}

// serves reports whether a request's host is ours. If only this machine can reach us, so can its browser: a web
// page that points its own name here (DNS rebinding) could read our answers. Its requests carry that name.
// Clients without a host are not browsers.
func (h *handler) serves(host string) bool {
	if h.hosts == nil || host == "" {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	for _, name := range h.hosts {
		if strings.EqualFold(host, name) {
			return true
		}
	}
	return false
}

// bounded refuses a profile that would take longer than maxProfile. Package pprof itself extends the write
// deadline.
func bounded(profile http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.ParseFloat(r.FormValue("seconds"), 64)
		if err == nil && !(seconds <= maxProfile.Seconds()) { // also true for NaN
			refuse(w, http.StatusBadRequest, fmt.Sprintf("a profile takes at most %.0f seconds", maxProfile.Seconds()))
			return
		}
		profile(w, r)
	}
}

// status requests the status, within the request's time and patience.
func (h *handler) status(r *http.Request) (control.Status, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	return h.asker.status(ctx)
}

// refuseStatus answers a request when there is no status. The log has the details.
func (h *handler) refuseStatus(w http.ResponseWriter, err error) {
	if errors.Is(err, errSilent) {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	refuse(w, http.StatusInternalServerError, "the daemon cannot report its state: its log says why")
}

// wait waits for requests and questions, for a limited time: a Status may hang forever.
func (h *handler) wait(most time.Duration) {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.active.Wait()
		h.asker.asking.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(most):
	}
}

func say(w io.Writer, text string) { _, _ = io.WriteString(w, text+"\n") } // the client may have gone

func refuse(w http.ResponseWriter, code int, text string) {
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	say(w, text)
}
