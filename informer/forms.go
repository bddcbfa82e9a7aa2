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
	// formsEvery is how often the cluster is asked in which form it serves each kind. The document has
	// some 100 bytes for each group and version.
	formsEvery = time.Minute
	// formsRefused is the wait where the server has no such document, or does not show it.
	formsRefused = time.Hour
	// formsPatience is how long streams wait for the first answer.
	formsPatience = 2 * time.Second
)

// forms knows in which form the server serves the kinds of each group and version. Defaulting, conversion
// and upgrades change what is read at the same resource version; most of that changes the OpenAPI document
// of the group and version as well, whose hash the index of these documents names.
//
// Source: k8s.io/kube-openapi/pkg/handler3, OpenAPIV3Discovery.
type forms struct {
	mu    sync.Mutex
	known map[schema.GroupVersion]form
	// asked is closed once the server was asked the first time.
	asked chan struct{}
}

// form is the form in which the kinds of a group and version are served.
type form struct {
	sum     uint64    // a number that another form does not have; 0: not known
	since   time.Time // when the server had answered with it first: a list that begins later is of it, or of a later one
	changed bool      // it was another one before
	before  uint64    // the sum of that one
	dispute time.Time // when the answers began to go back and forth between the two
}

const (
	// formSettles is how long several API servers behind one address may serve a kind in two forms.
	formSettles = 5 * time.Minute
	// maxFormSettles bounds the wait where they do so for longer, as during an upgrade that takes a day.
	maxFormSettles = 6 * time.Hour
)

// settled returns when all API servers can be taken to serve this form: once they have agreed for as long as
// they disagreed before.
func (f *form) settled() time.Time {
	if f.changed {
		return f.since.Add(min(max(formSettles, f.since.Sub(f.dispute)), maxFormSettles))
	}
	return f.since
}

// next returns the form that follows f when the server answers with another sum.
func (f *form) next(sum uint64, now time.Time) form {
	next := form{sum: sum, since: now, changed: true, before: f.sum, dispute: now}
	if sum == f.before && now.Before(f.settled()) {
		next.dispute = f.dispute
	}
	return next
}

func (f *forms) of(gv schema.GroupVersion) form {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[gv]
}

// set notes what the server said, and returns whether anything is new.
func (f *forms) set(sums map[schema.GroupVersion]uint64) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	known := make(map[schema.GroupVersion]form, len(sums))
	for gv, sum := range sums {
		was, ok := f.known[gv]
		switch {
		case !ok:
			news, was = true, form{sum: sum, since: now}
		case was.sum != sum:
			news, was = true, was.next(sum, now)
		}
		known[gv] = was
	}
	f.known = known
	return news
}

// watchForms keeps c.forms current until ctx ends, and has streams audited whose kind is served in another
// form.
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

// RefreshForms asks the server at once in which form it serves each kind, as the cluster does every minute.
// Streams whose kind is served in another form are then audited soon. It is for a caller who knows that a
// schema has changed.
func (c *Cluster) RefreshForms(ctx context.Context) error {
	if c.opts.AuditEvery < 0 {
		return nil
	}
	return c.refreshForms(ctx)
}

// awaitForms waits for the server's first answer, but not for long: the form of a list that begins before that is not
// known, and an audit has to compare all contents after it.
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
