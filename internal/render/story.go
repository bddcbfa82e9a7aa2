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
	"github.com/tattler-dev/tattler/internal/severity"
)

// Story is what the changes of one object come to, in the words of Text. It is for messages, each of which stands
// for several changes. Where the object is still on its way, the next message's Story continues this one: so a
// rollout has its whole duration, however many messages report it.
//
// A Story never changes. It holds digests of the object, each at most some 50 KB in memory, and nothing else.
type Story struct {
	resource change.Resource
	fold     fold
	state    bool // the state changed, and not only what somebody wants
	appeared bool // its state is all there is to say
	moved    bool // it was on its way to another state
	readier  bool // the number of ready pods changed, even if it is back at what it was
}

// Follow returns the story with one more change. The receiver may be nil. If it was told, the new story begins
// where that one ended. It returns nil where there is nothing to follow: for what is gone, a gap, an absence,
// and where what was before was purged.
func (s *Story) Follow(c change.Change, told bool) *Story {
	if c.After == nil || c.Op == event.Converted || c.Blind {
		return nil
	}
	c.Before, c.After = digestOf(c.Before), digestOf(c.After)
	next := &Story{resource: c.Resource}
	switch {
	case c.Op == event.Snapshot, c.Op == event.Entered:
		next.appeared = true
		next.fold = fold{from: c.After, origin: c.After}
	case c.Op == event.Created:
		next.fold = fold{since: momentOf(c), from: c.After, origin: c.After}
		if next.fold.born = c.Owner != nil && isPod(c.Resource); next.fold.born {
			next.state, next.fold.from, next.fold.origin = true, nil, nil
		}
	case s == nil:
		next.fold = fold{since: causeOf(c), origin: c.Before, from: c.Before}
	default:
		*next = *s
		if told {
			next.fold.told = gist(next.resource, next.fold.to)
			next.fold.rebase()
			next.state, next.appeared, next.readier = false, false, false
		}
	}
	next.add(c)
	return next
}

// add takes a change in; the objects of c are digests.
func (s *Story) add(c change.Change) {
	f := &s.fold
	state := slices.ContainsFunc(c.Fields, func(field change.FieldChange) bool { return !field.Quiet && isState(c, field) })
	s.state = s.state || state
	if c.Op == event.Updated {
		before := f.since
		if f.spec(c); f.since != before {
			f.settled = time.Time{}
		}
		s.moved = s.moved || moving(s.resource, f.from, c.Before)
		s.readier = s.readier || isReady(c.Before) != isReady(c.After)
	}
	f.to, f.latest, f.last = c.After, momentOf(c), c.At
	f.drop(c)
	if moving(s.resource, f.from, f.to) {
		s.moved, f.settled = true, time.Time{}
	} else if f.settled.IsZero() && state {
		f.settled, f.end = f.last, f.latest
	}
}

// Moving reports whether the object is on its way to another state, so that there will be more to say.
func (s *Story) Moving() bool { return moving(s.resource, s.fold.from, s.fold.to) }

// Text says in a few words what the changes come to. It is empty where the fields that changed say it better, and
// while the object's controller has not yet seen what somebody wants.
func (s *Story) Text() string {
	f := &s.fold
	switch {
	case s.appeared && !s.state:
		return stateOf(s.resource, f.to)
	case !s.state, stale(f.to):
		return ""
	}
	end := f.end
	if f.settled.IsZero() {
		end = f.latest
	}
	v := view{
		born: f.born, told: f.told, origin: f.origin, from: f.from, to: f.to,
		since: f.since, end: end, dropped: f.dropped, drops: f.drops, now: f.last, net: &netChanges{},
	}
	if s.readier {
		v.net.index = map[string]int{"status.readyReplicas": 0}
	}
	return inWords(s.resource, v)
}

// Severity judges what became of the object: a rollout or a Job that is done, and a pod that is ready, count as a
// recovery.
func (s *Story) Severity() event.Severity {
	f := &s.fold
	worst := f.severity(s.resource)
	if s.appeared {
		worst = severity.Failing(kindOf(s.resource), f.to)
	}
	if worst == event.Normal && s.moved && !s.Moving() && !terminating(f.to) {
		return event.Recovery
	}
	return worst
}

// What a digest holds of a status at most, and of what is wanted a tenth of that.
const (
	digestValues = 400
	digestBytes  = 24 << 10
	digestString = 300
)

// digestOf returns what words are made of: the names, the state, what is wanted, and a sum of the template.
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
				if desired := text(obj, "metadata", "annotations", desiredReplicas); desired != "" {
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

// desiredReplicas is the annotation in which a ReplicaSet has the size of its Deployment.
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

// sumOf stands for a value that is only compared.
func sumOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", maphash.Bytes(digestSeed, text))
}

// digester copies values within what is left of its bounds.
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
		return strings.Clone(v) // not the text that it was cut from
	case map[string]any:
		out := make(map[string]any, min(len(v), max(d.values, 0)))
		for _, k := range slices.Sorted(maps.Keys(v)) { // so that the same is left out each time
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
