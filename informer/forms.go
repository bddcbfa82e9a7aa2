package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
)

// Equal versions do not mean equal contents: CRD defaulting, conversion and API server upgrades change what is read
// at the same resource version. A list compares a sum of each object's bytes (wire.Sum) besides UID and version, and
// contents where sums differ. The hash of the group-version's OpenAPI document, requested every minute and kept with
// the state on disk, shows when to compare: then an audit lists whole objects beside the watch, which continues.
// While several API servers disagree about the form, the audits become rarer, down to one in six hours. The next one
// follows when the servers have agreed for as long as they disagreed.

const (
	// formsEvery is how often the cluster requests the forms of all kinds. The document has about 100 bytes per group
	// and version.
	formsEvery = time.Minute
	// formsRefused is the wait if the server does not have the document or refuses it.
	formsRefused = time.Hour
	// formsPatience is how long streams wait for the first answer.
	formsPatience = 2 * time.Second
)

// forms holds the form in which the server serves the kinds of each group and version. Defaulting, conversion and
// upgrades change the content read at an unchanged resource version. Most of these changes also change the group and
// version's OpenAPI document, whose hash is in the index of these documents.
//
// Source: k8s.io/kube-openapi/pkg/handler3, OpenAPIV3Discovery.
type forms struct {
	mu    sync.Mutex
	known map[schema.GroupVersion]form
	// asked is closed after the first request.
	asked chan struct{}
}

// form is the form in which the kinds of a group and version are served.
type form struct {
	sum       uint64    // identifies the form; 0: not known
	since     time.Time // when the server first answered with it: a list that begins later has this form or a newer one
	changed   bool      // another form was served before
	before    uint64    // the sum of that form
	flapSince time.Time // when the answers began to alternate between the two
}

const (
	// minFormStable is how long several API servers behind one address may serve different forms of a kind.
	minFormStable = 5 * time.Minute
	// maxFormStable limits the wait if they do so for longer, as during an upgrade that takes a day.
	maxFormStable = 6 * time.Hour
)

// stableAt returns when all API servers can be assumed to serve this form: once they have agreed for as long as they
// disagreed before.
func (f *form) stableAt() time.Time {
	if f.changed {
		return f.since.Add(min(max(minFormStable, f.since.Sub(f.flapSince)), maxFormStable))
	}
	return f.since
}

// next returns the form that replaces f when the server answers with another sum.
func (f *form) next(sum uint64, now time.Time) form {
	next := form{sum: sum, since: now, changed: true, before: f.sum, flapSince: now}
	if sum == f.before && now.Before(f.stableAt()) {
		next.flapSince = f.flapSince
	}
	return next
}

func (f *forms) get(gv schema.GroupVersion) form {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[gv]
}

// set stores the server's answer, and reports whether anything changed.
func (f *forms) set(sums map[schema.GroupVersion]uint64) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	known := make(map[schema.GroupVersion]form, len(sums))
	for gv, sum := range sums {
		was, ok := f.known[gv]
		switch {
		case !ok:
			changed, was = true, form{sum: sum, since: now}
		case was.sum != sum:
			changed, was = true, was.next(sum, now)
		}
		known[gv] = was
	}
	f.known = known
	return changed
}

// watchForms keeps c.forms current until ctx ends, and triggers audits of streams whose kind changed its form.
func (c *Cluster) watchForms(ctx context.Context) {
	for first := true; ; first = false {
		wait := formsEvery
		err := c.refreshForms(ctx)
		if first {
			close(c.forms.asked)
		}
		if err != nil && reflector.IsRefusal(err) {
			wait = formsRefused
		}
		select {
		case <-time.After(wait + rand.N(wait/4)):
		case <-ctx.Done():
			return
		}
	}
}

// RefreshForms checks at once in which form the server serves each kind, as the cluster does every minute. Streams whose
// kind changed its form are audited soon after. Call it after changing a schema.
func (c *Cluster) RefreshForms(ctx context.Context) error {
	if c.opts.AuditEvery < 0 {
		return nil
	}
	return c.refreshForms(ctx)
}

// awaitForms waits briefly for the server's first answer: a list that begins before it has no known form, so an audit
// must compare all contents afterwards.
func (c *Cluster) awaitForms(ctx context.Context) {
	if c.opts.AuditEvery < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, formsPatience)
	defer cancel()
	select {
	case <-c.forms.asked:
	case <-ctx.Done():
	}
}

func (c *Cluster) refreshForms(ctx context.Context) error {
	sums, err := c.askForms(ctx)
	if err == nil && c.forms.set(sums) {
		for _, s := range c.open() {
			s.wakeAudits()
		}
	}
	return err
}

func (c *Cluster) askForms(ctx context.Context) (map[schema.GroupVersion]uint64, error) {
	raw, err := c.Get(ctx, "/openapi/v3", nil)
	if err != nil {
		return nil, err
	}
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("read index of OpenAPI documents: %w", err)
	}
	sums := map[schema.GroupVersion]uint64{}
	for path, p := range index.Paths {
		u, err := url.Parse(p.ServerRelativeURL)
		gv, ok := groupVersionOf(path)
		if err != nil || !ok || u.Query().Get("hash") == "" {
			continue
		}
		sums[gv] = max(1, xxhash.Sum64String(u.Query().Get("hash")))
	}
	return sums, nil
}

// groupVersionOf reads "api/v1" and "apis/apps/v1".
func groupVersionOf(path string) (gv schema.GroupVersion, ok bool) {
	if version, ok := strings.CutPrefix(path, "api/"); ok {
		return schema.GroupVersion{Version: version}, !strings.Contains(version, "/")
	}
	rest, ok := strings.CutPrefix(path, "apis/")
	group, version, both := strings.Cut(rest, "/")
	return schema.GroupVersion{Group: group, Version: version}, ok && both && !strings.Contains(version, "/")
}
