package reconstruct

import (
	"cmp"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// Options select entries. The zero value selects everything.
type Options struct {
	// Since and Until bound the time of entries; the zero time is no bound. An interval is selected if it may lie within.
	Since, Until time.Time
	// Rules, if set, leave out the writes of managers that own quiet fields only, unless Noise is set.
	Rules *quiet.Set
	Noise bool
	// Only and Ignore narrow the fields. With Only, entries without such fields are left out; with Ignore, writes
	// without other fields.
	Only, Ignore []diff.Pattern
	// Managers are globs; empty selects all.
	Managers []string
	// Severities are the wanted ones; empty selects all.
	Severities []event.Severity
	// Humans leaves out facts about a state, and the writes of Kubernetes' own programs.
	Humans bool
	// Follow limits objects that were not named to those that named ones own, directly or indirectly.
	Follow bool
	// Limit is the largest number of entries, of which the newest are kept; 0 means 10,000.
	Limit int
}

// Collector collects the entries of many objects. It keeps entries, identifiers and packed templates, but no objects. It
// is safe for concurrent use.
type Collector struct {
	o Options

	mu        sync.Mutex
	entries   []Entry
	dropped   int
	fresh     bool // a workload was added since the last Take
	revisions *Revisions
	workloads map[string]Entry  // by UID: the objects that may have rollouts
	owner     map[string]string // UID to the controller's UID; only with Follow
	named     map[string]bool   // by UID; only with Follow
}

const defaultLimit = 10_000

// NewCollector returns a Collector.
func NewCollector(o Options) *Collector {
	o.Limit = cmp.Or(o.Limit, defaultLimit)
	return &Collector{
		o: o, revisions: NewRevisions(o.Since), workloads: map[string]Entry{}, owner: map[string]string{}, named: map[string]bool{},
	}
}

// Add adds what a selected object records. named says that the user asked for the object, other than through its owner.
// The object is not modified, nor kept.
func (c *Collector) Add(r change.Resource, obj map[string]any, named bool) {
	entries := c.selected(Of(r, obj, c.o.Since, c.o.Rules))
	resource := resourceOf(r, obj)
	owner := ""
	switch {
	case isEvent(r):
		owner = aboutUID(obj)
	case resource.Owner != nil:
		owner = resource.Owner.UID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revisions.Add(r, obj)
	switch kindOf(r) {
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps":
		c.workloads[resource.UID] = Entry{Kind: r, Data: event.Reconstruction{Resource: resource}}
		c.fresh = true
	}
	if c.o.Follow {
		if named {
			c.named[resource.UID] = true
		} else {
			c.owner[resource.UID] = owner
		}
	}
	c.keep(entries)
}

// AddEvidence adds an object that was not selected, but that may be a revision of a selected one.
func (c *Collector) AddEvidence(r change.Resource, obj map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner := change.Controller(obj); owner == nil || c.workloads[owner.UID].Data.Resource.UID == "" {
		return
	}
	c.revisions.Add(r, obj)
}

// Workloads returns the kinds of the objects so far that have revisions.
func (c *Collector) Workloads() (kinds []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workloads {
		if k := kindOf(w.Kind); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// keep adds entries, and drops the oldest beyond the limit: up to as many more are held meanwhile. c.mu is held.
func (c *Collector) keep(entries []Entry) {
	c.entries = append(c.entries, entries...)
	if len(c.entries) > 2*c.o.Limit {
		c.trim()
	}
}

func (c *Collector) trim() {
	slices.SortStableFunc(c.entries, order)
	if more := len(c.entries) - c.o.Limit; more > 0 {
		c.dropped += more
		c.entries = slices.Clone(c.entries[more:])
	}
}

// order sorts by time; a creation comes before the other facts of its second.
func order(a, b Entry) int {
	rank := func(e Entry) int {
		if e.Data.Fact == event.FactCreated {
			return 0
		}
		return 1
	}
	return cmp.Or(
		a.Time.Compare(b.Time), cmp.Compare(rank(a), rank(b)),
		cmp.Compare(a.Data.Resource.Namespace, b.Data.Resource.Namespace), cmp.Compare(a.Data.Resource.Kind, b.Data.Resource.Kind),
		cmp.Compare(a.Data.Resource.Name, b.Data.Resource.Name), cmp.Compare(a.Data.Fact, b.Data.Fact), cmp.Compare(a.Data.Manager, b.Data.Manager),
	)
}

// Take returns the entries collected since the last call, the oldest first, and how many older ones were dropped because
// of the limit.
func (c *Collector) Take() (entries []Entry, dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, w := range c.workloads {
		c.entries = append(c.entries, c.selected(c.revisions.Rollouts(w.Kind, w.Data.Resource))...)
		delete(c.revisions.owners, uid)
	}
	if c.o.Follow {
		c.entries = slices.DeleteFunc(c.entries, func(e Entry) bool { return !c.belongs(e.Data.Resource.UID) })
	}
	c.trim()
	entries, dropped = c.entries, c.dropped
	c.entries, c.dropped, c.fresh = nil, 0, false
	return entries, dropped
}

// belongs reports whether an object is named or owned by a named one. Users may write circular references.
func (c *Collector) belongs(uid string) bool {
	const depth = 5 // an Event, a pod, a Job and a CronJob
	for range depth {
		if c.named[uid] {
			return true
		}
		if uid = c.owner[uid]; uid == "" {
			return false
		}
	}
	return false
}

// selected returns the wanted entries, with the wanted fields.
func (c *Collector) selected(entries []Entry) (wanted []Entry) {
	for _, e := range entries {
		if c.selects(&e) {
			wanted = append(wanted, e)
		}
	}
	return wanted
}

// selects applies the conditions about a single entry, and narrows its fields.
func (c *Collector) selects(e *Entry) bool {
	from := e.Time
	if !e.Since.IsZero() {
		from = e.Since
	}
	switch {
	case !c.o.Until.IsZero() && !from.Before(c.o.Until):
		return false
	case e.Quiet && !c.o.Noise:
		return false
	case len(c.o.Severities) > 0 && !slices.Contains(c.o.Severities, e.Data.Severity):
		return false
	case c.o.Humans && automatic(e):
		return false
	case len(c.o.Managers) > 0 && !c.writtenBy(e):
		return false
	}
	if len(c.o.Only)+len(c.o.Ignore) == 0 {
		return true
	}
	e.Fields = slices.DeleteFunc(slices.Clone(e.Fields), func(f diff.Change) bool {
		return c.ignores(f) || len(c.o.Only) > 0 && !slices.ContainsFunc(c.o.Only, func(p diff.Pattern) bool { return p.Touches(f) })
	})
	return len(e.Fields) > 0 || len(c.o.Only) == 0 && e.Data.Fact != event.FactWritten
}

func (c *Collector) ignores(f diff.Change) bool {
	return slices.ContainsFunc(c.o.Ignore, func(p diff.Pattern) bool { return p.Covers(f.Path) })
}

func (c *Collector) writtenBy(e *Entry) bool {
	return slices.ContainsFunc(c.o.Managers, func(pattern string) bool {
		ok, err := path.Match(pattern, e.Data.Manager)
		return err == nil && ok || pattern == managers.Display(e.Data.Manager, e.Data.Subresource)
	})
}

// automatic reports whether an entry is not about a write by a person's tool or an operator, as change.Change.Automatic.
func automatic(e *Entry) bool {
	switch e.Data.Fact {
	case event.FactWritten:
		return e.Data.Subresource == "status" || change.IsComponent(e.Data.Manager)
	case event.FactCreated:
		return e.Data.Resource.Owner != nil || change.IsComponent(e.Data.Manager)
	case event.FactRollout, event.FactRelease:
		return false
	case event.FactDeleting:
		return e.Data.Resource.Owner != nil
	}
	return true
}

// Empty reports whether nothing that may have entries was added since the last Take.
func (c *Collector) Empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries) == 0 && !c.fresh
}
