package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// party is a recorder.
type party struct {
	*testing.T
	name, path string
	redactor   *redact.Redactor
	server     *informertest.Server
	link       link
	journal    *journal.Journal // nil while it does not run
	end        func()
}

func (p *party) running() bool { return p.journal != nil }

func (p *party) toggle(kill bool) {
	if p.running() {
		p.stop(kill)
	} else {
		p.start()
	}
}

// start does nothing if it runs.
func (p *party) start() {
	if p.running() {
		return
	}
	rules, err := quiet.New()
	if err == nil {
		p.journal, err = journal.Open(p.Context(), p.path, journal.Options{Cluster: "test"})
	}
	if err != nil {
		p.Fatal(err)
	}
	k, err := newKept(p.Context(), p.journal, "", slog.New(slog.DiscardHandler))
	if err != nil {
		p.Fatal(err)
	}
	config := p.server.Config()
	config.Wrap(p.link.wrap)
	w, err := capture.New(capture.Options{Config: config, Scopes: []capture.Scope{{Types: []string{"configmaps,deployments.apps,widgets.example.com"}}}, Redactor: p.redactor, Quiet: rules, Kept: k})
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.Context())
	var running sync.WaitGroup
	rec := &recorder{journal: p.journal, state: &state{}, recorded: func(int64, capture.Version) {}, onMessage: func(capture.Message) {}}
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			p.Errorf("%s: %v", p.name, err)
		}
	})
	running.Go(func() {
		rec.run(context.WithoutCancel(ctx), w.Messages(), func(err error) {
			if !errors.Is(err, journal.ErrClosed) {
				p.Errorf("%s: %v", p.name, err)
			}
		})
	})
	p.end = func() { cancel(); running.Wait() }
	synctest.Wait()
}

// stop ends the recorder; a killed one writes nothing more.
func (p *party) stop(kill bool) {
	if !p.running() {
		return
	}
	if kill {
		if err := p.journal.Close(); err != nil {
			p.Error(err)
		}
	}
	p.end()
	if err := p.journal.Close(); err != nil && !errors.Is(err, journal.ErrClosed) {
		p.Error(err)
	}
	p.journal = nil
}

// link is a party's connection to the server.
type link struct {
	mu       sync.Mutex
	down     bool
	secluded bool // no object can be read by itself
	open     map[*context.CancelFunc]bool
}

func (l *link) set(down, secluded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.secluded = down, secluded
	for cancel := range l.open {
		if down {
			(*cancel)()
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

var oneObject = regexp.MustCompile(`/namespaces/[^/]+/[^/]+/[^/]+$`)

func (l *link) wrap(to http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancel(r.Context())
		l.mu.Lock()
		down, secluded := l.down, l.secluded && oneObject.MatchString(r.URL.Path)
		if l.open == nil {
			l.open = map[*context.CancelFunc]bool{}
		}
		l.open[&cancel] = true
		l.mu.Unlock()
		context.AfterFunc(r.Context(), func() {
			cancel()
			l.mu.Lock()
			delete(l.open, &cancel)
			l.mu.Unlock()
		})
		if down {
			return nil, syscall.ECONNREFUSED
		}
		if secluded {
			return forbidden(), nil
		}
		return to.RoundTrip(r.WithContext(ctx))
	})
}

func forbidden() *http.Response {
	w := httptest.NewRecorder()
	informertest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "no")
	return w.Result()
}

// rowSeen is a row of a journal.
type rowSeen struct {
	journal.Entry
	before, after string // states
}

var stateOf = regexp.MustCompile(`"is":"(state\d+)"`)

func (p *party) rows() (rows []rowSeen) {
	r, err := journal.OpenReader(p.Context(), p.path)
	if err != nil {
		p.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Rows(p.Context(), journal.Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			p.Fatal(err)
		}
		if !e.Op.HasObject() {
			continue
		}
		before, after, err := e.Contents(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		is := func(json []byte) string {
			if m := stateOf.FindSubmatch(json); m != nil {
				return string(m[1])
			}
			return ""
		}
		rows = append(rows, rowSeen{e, is(before), is(after)})
	}
	return rows
}

// checkHeads checks that each replaced history has begun an epoch, and nothing else has, and that the recorder knows the
// server's last state.
func (p *party) checkHeads(w *world) {
	j, err := journal.Open(p.Context(), p.path, journal.Options{Cluster: "test"})
	if err != nil {
		p.Fatal(err)
	}
	defer j.Close()
	streams, err := j.Streams(p.Context())
	if err != nil || len(streams) != len(w.kinds) {
		p.Fatalf("%s: %d streams, %v", p.name, len(streams), err)
	}
	var got, want []string
	for _, s := range streams {
		if s.Head.Epoch != w.history {
			p.Errorf("%s: %s in epoch %d of %d", p.name, s.Stream.GroupResource, s.Head.Epoch, w.history)
		}
		for o, err := range j.Objects(p.Context(), s.Stream) {
			if err != nil {
				p.Fatal(err)
			}
			got = append(got, s.Stream.GroupResource+" "+o.Name+" "+o.UID+" "+string(stateOf.Find(o.JSON)))
		}
	}
	for at, o := range w.objects {
		want = append(want, at.gvr.GroupResource().String()+" "+at.name+" "+o.uid+` "is":"`+o.state+`"`)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.Errorf("%s knows\n%s\nwant\n%s", p.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
