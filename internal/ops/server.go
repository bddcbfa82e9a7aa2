// Package ops is the HTTP server with which a platform looks after a daemon: metrics for Prometheus,
// health for Kubernetes, and profiles for who works on the program.
//
//	/metrics       the metrics of docs/metrics.md, and those of Go and of the process
//	/healthz       200 unless a restart would help
//	/readyz        200 while everything is recorded that should be; else 503 and why not, a line each
//	/debug/pprof/  Go's profiles, where they are asked for, on a loopback address only
//
// It is made of control.Status alone. It asks nobody who they are, so it tells nothing that may not be
// known to everyone who reaches the port: numbers, and the names of kinds and of sinks; no object, no
// namespace, no error of a server. It speaks plain HTTP.
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

// Options say what is served.
type Options struct {
	// Status is asked for each answer, by one goroutine at a time. An answer takes no longer than some
	// seconds: its context ends then, and who asked gets an error.
	Status func(context.Context) (control.Status, error)
	// Address is the configured one. On a loopback address, requests are answered that are for its host
	// or for a loopback name or address, and no others.
	Address string
	// Pprof serves profiles, too.
	Pprof bool
	// Log hears what goes wrong; nil: nobody does.
	Log *slog.Logger
}

// The bounds of what a client can take.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 15 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	// maxProfile is how long a profile may take; the usual one takes 30 s.
	maxProfile = 5 * time.Minute
	// maxScrapes is how many scrapes are answered at once; there are as many Prometheus servers, or two.
	maxScrapes = 4
	// grace is how long requests may take to end when the server does.
	grace = 2 * time.Second
)

// Serve answers until ctx ends, and then returns nil within seconds, with all that it started ended but
// a Status that does not heed its context. It closes the listener. An error is the listener's, or says
// that there are to be profiles on an address that others reach.
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
	o.Log.Info("answering for metrics and health", "address", l.Addr().String())
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
	_ = srv.Close() // nothing is sent any more that could be lost
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
	process *prometheus.Registry // what is there without a status
	scrapes chan struct{}        // has an element for each
	hosts   []string             // that are answered to; nil: all

	mu      sync.Mutex // makes one of noting that it ends and of adding to active
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
		// Not its cmdline: an argument may hold a credential.
		mux.HandleFunc("GET /debug/pprof/", bounded(pprof.Index))
		mux.HandleFunc("GET /debug/pprof/profile", bounded(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", bounded(pprof.Trace))
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, index) })
	h.next = mux
	return h
}

// ServeHTTP refuses what was not meant for this server, and answers the rest.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.enter() {
		return // nobody is there any more
	}
	defer h.active.Done()
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if !h.means(r.Host) {
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

// means tells whether a request for a host is for us. Where only this machine reaches us, a browser of it
// does, too: a page from elsewhere that has its own name lead here (DNS rebinding) would read what we
// tell. Its requests are for that name. Clients without a host are no browsers.
func (h *handler) means(host string) bool {
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

// bounded refuses a profile that would take longer than maxProfile. The package itself moves the deadline
// of writing.
func bounded(profile http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.ParseFloat(r.FormValue("seconds"), 64)
		if err == nil && !(seconds <= maxProfile.Seconds()) { // as NaN is
			refuse(w, http.StatusBadRequest, fmt.Sprintf("a profile takes at most %.0f seconds", maxProfile.Seconds()))
			return
		}
		profile(w, r)
	}
}

// status asks for the status, for as long as a request and patience last.
func (h *handler) status(r *http.Request) (control.Status, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	return h.asker.status(ctx)
}

// refuseStatus answers a request for which there is no status. What exactly is wrong is in the log.
func (h *handler) refuseStatus(w http.ResponseWriter, err error) {
	if errors.Is(err, errSilent) {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	refuse(w, http.StatusInternalServerError, "the daemon cannot report its state: its log says why")
}

// wait waits for requests and questions, bounded: a Status may hang for ever.
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

func say(w io.Writer, text string) { _, _ = io.WriteString(w, text+"\n") } // who has gone misses nothing

func refuse(w http.ResponseWriter, code int, text string) {
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	say(w, text)
}
