package render

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/health"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Story is the net effect of several changes of one object, in the words of Text, for messages that each cover several
// changes. While the object is in transition, the next message's Story continues this one, so that a rollout has its whole
// duration, however many messages report it.
//
// A Story is immutable. It holds only digests of the object, each at most some 50 KB in memory.
type Story struct {
	kind     change.Kind
	fold     fold
	state    bool // the state changed, not only the spec
	appeared bool // the object was in a first list, or entered the selection
	moved    bool // it was in transition
	readier  bool // the number of ready pods changed, even if it has its old value again
}

// Follow returns the story with one more change. The receiver may be nil. If it was reported, the new story begins where
// that one ended. Follow returns nil for a deletion, a gap, an absence, and a change whose previous state was purged.
func (s *Story) Follow(c change.Change, reported bool) *Story {
	if c.After == nil || c.Op == event.Converted || c.Blind {
		return nil
	}
	c.Before, c.After = digestOf(c.Before), digestOf(c.After)
	next := &Story{kind: c.Kind}
	switch {
	case c.Op == event.Snapshot, c.Op == event.Entered:
		next.appeared = true
		next.fold = fold{from: c.After, origin: c.After}
	case c.Op == event.Created:
		next.fold = fold{since: momentOf(c), from: c.After, origin: c.After}
		if next.fold.created = c.Owner != nil && isPod(c.Kind); next.fold.created {
			next.state, next.fold.from, next.fold.origin = true, nil, nil
		}
	case s == nil:
		next.fold = fold{since: causeOf(c), origin: c.Before, from: c.Before}
	default:
		*next = *s
		if reported {
			next.fold.lastState = gist(next.kind, next.fold.to)
			next.fold.rebase()
			next.state, next.appeared, next.readier = false, false, false
		}
	}
	next.add(c)
	return next
}

// add adds a change, whose objects are digests.
func (s *Story) add(c change.Change) {
	f := &s.fold
	state := slices.ContainsFunc(c.Fields, func(field change.FieldChange) bool { return !field.Quiet && isState(c, field) })
	s.state = s.state || state
	if c.Op == event.Updated {
		before := f.since
		if f.spec(c); f.since != before {
			f.stableSince = time.Time{}
		}
		s.moved = s.moved || moving(s.kind, f.from, c.Before)
		s.readier = s.readier || isReady(c.Before) != isReady(c.After)
	}
	f.to, f.latest, f.last = c.After, momentOf(c), c.At
	f.drop(c)
	if moving(s.kind, f.from, f.to) {
		s.moved, f.stableSince = true, time.Time{}
	} else if f.stableSince.IsZero() && state {
		f.stableSince, f.end = f.last, f.latest
	}
}

// Moving reports whether the object is in transition, so that more changes will follow.
func (s *Story) Moving() bool { return moving(s.kind, s.fold.from, s.fold.to) }

// Text describes the net effect in a few words. It is empty if the changed fields say it better, and while the controller
// has not yet seen the spec.
func (s *Story) Text() string {
	f := &s.fold
	switch {
	case s.appeared && !s.state:
		return stateOf(s.kind, f.to)
	case !s.state, stale(f.to):
		return ""
	}
	end := f.end
	if f.stableSince.IsZero() {
		end = f.latest
	}
	v := view{
		created: f.created, lastState: f.lastState, origin: f.origin, from: f.from, to: f.to,
		since: f.since, end: end, dropped: f.dropped, drops: f.drops, now: f.last, net: &netChanges{},
	}
	if s.readier {
		v.net.index = map[string]int{"status.readyReplicas": 0}
	}
	return describeView(s.kind, v)
}

// Severity judges the net effect. A finished rollout or Job and a ready pod count as a recovery.
func (s *Story) Severity() event.Severity {
	f := &s.fold
	worst := f.severity(s.kind)
	if s.appeared {
		worst = health.Failing(s.kind.GroupKind(), f.to)
	}
	if worst == event.Normal && s.moved && !s.Moving() && !terminating(f.to) {
		return event.Recovery
	}
	return worst
}

// The bounds of a digest's status. The other parts have a tenth of them.
const (
	digestValues = 400
	digestBytes  = 24 << 10
	digestString = 300
)

// digestOf returns the parts of an object that describeView reads: names, state, spec, and a hash of the template.
func digestOf(obj map[string]any) map[string]any {
	if obj == nil {
		return nil
	}
	out := map[string]any{}
	for _, key := range []string{"kind", "revision", "metadata", "spec", "status"} {
		v, ok := obj[key]
		if !ok {
			continue
		}
		if m, ok := v.(map[string]any); ok {
			m = maps.Clone(m)
			switch key {
			case "metadata":
				maps.DeleteFunc(m, func(k string, _ any) bool { return !digestMetadata[k] })
				if desired := jsonmap.Text(obj, "metadata", "annotations", desiredReplicas); desired != "" {
					m["annotations"] = map[string]any{desiredReplicas: desired}
				}
			case "spec":
				for k, v := range m {
					if k == "template" {
						m[k] = sumOf(v)
					} else if !digestSpec[k] {
						delete(m, k)
					}
				}
			}
			v = m
		}
		d := &digester{values: digestValues, bytes: digestBytes}
		if key != "status" {
			d = &digester{values: digestValues / 10, bytes: digestBytes / 10}
		}
		out[key] = d.copy(v)
	}
	return out
}

// desiredReplicas is the annotation of a ReplicaSet with the size of its Deployment.
const desiredReplicas = "deployment.kubernetes.io/desired-replicas"

var digestMetadata = keys("name", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers")

var digestSpec = keys("replicas", "paused", "suspend", "completions", "nodeName", "volumeName", "finalizers", "updateStrategy")

func keys(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, k := range names {
		m[k] = true
	}
	return m
}

var digestSeed = maphash.MakeSeed()

// sumOf returns a hash of a value that is only compared.
func sumOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", maphash.Bytes(digestSeed, text))
}

// digester copies values within its remaining bounds.
type digester struct{ values, bytes int }

func (d *digester) copy(v any) any {
	if d.values--; d.values < 0 || d.bytes < 0 {
		return nil
	}
	switch v := v.(type) {
	case string:
		if len(v) > digestString {
			v = strings.ToValidUTF8(v[:digestString], "") + "…"
		}
		d.bytes -= len(v)
		return strings.Clone(v) // does not keep the whole text alive
	case map[string]any:
		out := make(map[string]any, min(len(v), max(d.values, 0)))
		for _, k := range slices.Sorted(maps.Keys(v)) { // sorted, so that the same keys are left out each time
			if d.values <= 0 || d.bytes <= 0 {
				break
			}
			d.bytes -= len(k)
			out[strings.Clone(k)] = d.copy(v[k])
		}
		return out
	case []any:
		out := make([]any, 0, min(len(v), max(d.values, 0)))
		for _, one := range v {
			if d.values <= 0 || d.bytes <= 0 {
				break
			}
			out = append(out, d.copy(one))
		}
		return out
	}
	return v
}
