// Package openapi provides the merge keys of lists, from the cluster's OpenAPI v3 documents. These cover
// built-in kinds, custom resources and aggregated APIs alike.
//
// A document is fetched when the first object of its group and version is compared (200 KB to 1.6 MB as of
// Kubernetes 1.36); only the parts that a diff needs are kept.
package openapi

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/diff"
)

// Fetch gets a path of the API server, such as /openapi/v3/apis/apps/v1, as JSON.
type Fetch func(ctx context.Context, path string) ([]byte, error)

// ErrUnknownKind means that the server's document lacks the kind. The server publishes it some time after the
// definition was created.
var ErrUnknownKind = errors.New("kind not in the OpenAPI document")

// Limits of fetching. A new custom resource is usually published within two seconds; a server that is down
// should not be asked again for each change.
const (
	fetchTimeout = 30 * time.Second
	firstRetry   = time.Second
	lastRetry    = 30 * time.Second
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
	doc  *document
	err  error
	// After a failure the next fetch is not before retry; wait is the last delay.
	retry time.Time
	wait  time.Duration
}

// For returns the schema of a kind. It waits for a fetch if needed; concurrent callers share it. On an error
// the schema is nil, and a diff compares without one. The same error is returned, without a fetch, until the
// next try (after 1 s, then up to 30 s).
func (s *Schemas) For(ctx context.Context, group, version, kind string) (diff.Schema, error) {
	gv := groupVersion{group, version}
	e := s.entry(gv)
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for OpenAPI document of %s: %w", gv, ctx.Err())
	}
	if root := e.doc.kind(group, version, kind); root != nil {
		return root, nil
	}
	if time.Now().Before(e.retry) {
		if e.err != nil {
			return nil, e.err
		}
		return nil, unknown(gv, kind)
	}
	doc, err := s.load(ctx, gv)
	if ctx.Err() != nil { // the caller's end says nothing about the server
		return nil, fmt.Errorf("fetch OpenAPI document of %s: %w", gv, ctx.Err())
	}
	if err == nil {
		e.doc = doc
	}
	e.err = err
	root := e.doc.kind(group, version, kind)
	if err == nil && root != nil {
		e.wait = 0
		return root, nil
	}
	e.wait = min(max(2*e.wait, firstRetry), lastRetry)
	e.retry = time.Now().Add(e.wait)
	if err != nil {
		return nil, err
	}
	return nil, unknown(gv, kind)
}

// Invalidate drops a document, because a definition in its group changed.
func (s *Schemas) Invalidate(group, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.docs, groupVersion{group, version})
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
		return nil, fmt.Errorf("parse OpenAPI document of %s: %w", gv, err)
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
