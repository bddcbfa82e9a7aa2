// Package openapi provides the merge keys of lists, from the cluster's OpenAPI v3 documents. These cover
// built-in kinds, custom resources and aggregated APIs alike.
//
// A document is fetched when the first object of its group and version is compared (200 KB to 1.6 MB as of
// Kubernetes 1.36); only the parts that a diff needs are kept.
package openapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/diff"
)

// Fetch gets a path of the API server, such as /openapi/v3/apis/apps/v1, as JSON. The error is an ErrRefused if another
// request would not help.
type Fetch func(ctx context.Context, path string) ([]byte, error)

// ErrRefused means that the server does not have a document, or does not show it.
var ErrRefused = errors.New("OpenAPI document refused")

// ErrUnknownKind means that the server's document lacks the kind. The server publishes it some time after the
// definition was created.
var ErrUnknownKind = errors.New("kind not in the OpenAPI document")

var errParse = errors.New("parse OpenAPI document")

// Limits of fetching. A new custom resource is usually published within two seconds; a server that is down
// should not be asked again for each change.
const (
	fetchTimeout = 30 * time.Second
	firstRetry   = time.Second
	lastRetry    = 30 * time.Second
	// patience is how long a change waits for a document that the server may have soon. It then waits no more until
	// the document was read. publication is the same for a kind that the document lacks.
	patience    = 30 * time.Second
	publication = 5 * time.Second
)

// Schemas caches the documents of one API server. It is safe for concurrent use. Its size is bounded by the
// number of requested groups and versions.
type Schemas struct {
	fetch Fetch

	mu   sync.Mutex
	docs map[groupVersion]*entry
}

type groupVersion struct{ group, version string }

// New returns an empty Schemas. It fetches nothing yet.
func New(fetch Fetch) *Schemas {
	return &Schemas{fetch: fetch, docs: make(map[groupVersion]*entry)}
}

// entry is a document, or the error of fetching it.
type entry struct {
	// fetchSem is held while fetching; it guards the other fields.
	turn chan struct{}
	doc  atomic.Pointer[document]
	old  *document // before Invalidate; used until the new one is there
	err  error
	// After a failure the next fetch is not before retry; wait is the last delay.
	retry time.Time
	wait  time.Duration
	// gaveUp is set once a caller has waited in vain.
	gaveUp bool
}

// For returns the schema of a kind. It waits for a fetch if needed; concurrent callers share it. If the server
// may have the document soon, it is fetched again, for up to 30 s. On an error the schema is nil, and a diff
// compares without one. The same error is returned, without a fetch, until the next try (after 1 s, then up to
// 30 s).
func (s *Schemas) For(ctx context.Context, group, version, kind string) (diff.Schema, error) {
	gv := groupVersion{group, version}
	e := s.entry(gv)
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for OpenAPI document of %s: %w", gv, ctx.Err())
	}
	begun := time.Now()
	for {
		root, err := s.try(ctx, e, gv, kind)
		if err == nil || ctx.Err() != nil || e.gaveUp {
			return root, err
		}
		if e.retry.Sub(begun) > patienceWith(err) {
			e.gaveUp = true
			return nil, err
		}
		select {
		case <-time.After(time.Until(e.retry)):
		case <-ctx.Done():
		}
	}
}

// patienceWith returns how long to wait after an error.
func patienceWith(err error) time.Duration {
	switch {
	case errors.Is(err, ErrUnknownKind):
		return publication
	case errors.Is(err, errParse), errors.Is(err, ErrRefused):
		return 0
	}
	return patience
}

// try returns the schema of a kind, after at most one fetch. The caller holds the turn.
func (s *Schemas) try(ctx context.Context, e *entry, gv groupVersion, kind string) (diff.Schema, error) {
	find := func() diff.Schema { return e.doc.Load().kind(gv.group, gv.version, kind) }
	if root := find(); root != nil {
		return root, nil
	}
	orOld := func(err error) (diff.Schema, error) {
		if root := e.old.kind(gv.group, gv.version, kind); root != nil {
			return root, nil
		}
		return nil, err
	}
	if time.Now().Before(e.retry) {
		if e.err != nil {
			return orOld(e.err)
		}
		return orOld(unknown(gv, kind))
	}
	doc, err := s.load(ctx, gv)
	if ctx.Err() != nil { // the caller's end says nothing about the server
		return nil, fmt.Errorf("fetch OpenAPI document of %s: %w", gv, ctx.Err())
	}
	if err == nil {
		e.doc.Store(doc)
	}
	e.err = err
	if root := find(); err == nil && root != nil {
		e.wait, e.old, e.gaveUp = 0, nil, false
		return root, nil
	}
	e.wait = min(max(2*e.wait, firstRetry), lastRetry)
	e.retry = time.Now().Add(e.wait)
	if err == nil {
		err = unknown(gv, kind)
	}
	return orOld(err)
}

// Invalidate makes the next For fetch a document again, because a definition in its group changed. Until that succeeds, the
// known one is used.
func (s *Schemas) Invalidate(group, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gv := groupVersion{group, version}
	if e := s.docs[gv]; e != nil {
		s.docs[gv] = &entry{turn: make(chan struct{}, 1), old: cmp.Or(e.doc.Load(), e.old)}
	}
}

func (s *Schemas) entry(gv groupVersion) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.docs[gv]
	if !ok {
		e = &entry{turn: make(chan struct{}, 1)}
		s.docs[gv] = e
	}
	return e
}

// load skips the index (/openapi/v3): the paths that it lists are fixed, and its hashes only serve HTTP caches.
func (s *Schemas) load(ctx context.Context, gv groupVersion) (*document, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	body, err := s.fetch(ctx, "/openapi/v3/"+gv.path())
	if err != nil {
		return nil, fmt.Errorf("fetch OpenAPI document of %s: %w", gv, err)
	}
	doc, err := parse(body)
	if err != nil {
		return nil, fmt.Errorf("%w of %s: %w", errParse, gv, err)
	}
	return doc, nil
}

func (gv groupVersion) path() string {
	if gv.group == "" {
		return "api/" + url.PathEscape(gv.version)
	}
	return "apis/" + url.PathEscape(gv.group) + "/" + url.PathEscape(gv.version)
}

func (gv groupVersion) String() string {
	if gv.group == "" {
		return gv.version
	}
	return gv.group + "/" + gv.version
}

func unknown(gv groupVersion, kind string) error {
	return fmt.Errorf("find %s in %s: %w", kind, gv, ErrUnknownKind)
}
