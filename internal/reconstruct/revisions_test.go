package reconstruct

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

var (
	deployments         = change.Resource{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
	statefulSets        = change.Resource{Group: "apps", Version: "v1", Resource: "statefulsets", Kind: "StatefulSet", Namespaced: true}
	replicaSets         = change.Resource{Group: "apps", Version: "v1", Resource: "replicasets", Kind: "ReplicaSet", Namespaced: true}
	controllerRevisions = change.Resource{Group: "apps", Version: "v1", Resource: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true}
)

// controller numbers the templates of one workload as Kubernetes' controllers do.
type controller struct {
	rand      *rand.Rand
	sets      bool // of a Deployment: ReplicaSets
	now       time.Time
	revisions []kept
	moves     []move // the true history
}

type kept struct {
	image            string
	number           int64
	history          []int64
	created, written time.Time
}

type move struct {
	at       time.Time
	number   int64
	from, to string // images
	created  bool   // it made a revision
}

func (c *controller) newest() *kept {
	var best *kept
	for i := range c.revisions {
		if best == nil || c.revisions[i].number > best.number {
			best = &c.revisions[i]
		}
	}
	return best
}

// deploy changes the template.
func (c *controller) deploy(image string) {
	last := c.newest()
	m := move{at: c.now, number: 1, to: image, created: true}
	if last != nil {
		if last.image == image {
			return
		}
		m.number, m.from = last.number+1, last.image
	}
	for i := range c.revisions {
		if v := &c.revisions[i]; v.image == image {
			v.history, v.number, v.written, m.created = append(v.history, v.number), m.number, c.now, false
		}
	}
	if m.created {
		c.revisions = append(c.revisions, kept{image: image, number: m.number, created: c.now, written: c.now})
	}
	c.moves = append(c.moves, m)
}

// touch writes a revision without changing its number, as scaling does.
func (c *controller) touch() {
	c.revisions[c.rand.IntN(len(c.revisions))].written = c.now
}

// clean removes the oldest revision.
func (c *controller) clean() {
	if len(c.revisions) < 3 {
		return
	}
	oldest := 0
	for i, v := range c.revisions {
		if v.number < c.revisions[oldest].number {
			oldest = i
		}
	}
	c.revisions = append(c.revisions[:oldest], c.revisions[oldest+1:]...)
}

func (c *controller) step() {
	c.now = c.now.Add(time.Duration(1+c.rand.IntN(60_000)) * time.Millisecond)
	switch n := c.rand.IntN(10); {
	case n < 6 || len(c.revisions) == 0:
		c.deploy(fmt.Sprintf("shop/app:%d", c.rand.IntN(5)))
	case n < 8:
		c.touch()
	default:
		c.clean()
	}
}

func template(image string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec": map[string]any{"containers": []any{map[string]any{
			"name": "app", "image": image, "env": []any{map[string]any{"name": "PASSWORD", "value": "hidden #0123456789abcdef"}},
		}}},
	}
}

// object returns a revision as the server has it.
func (c *controller) object(t *testing.T, v kept) map[string]any {
	t.Helper()
	name := fmt.Sprintf("web-%d", v.created.UnixNano())
	temp := template(v.image)
	// Hidden values have other markers in other objects.
	spec := temp["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	spec["env"] = []any{map[string]any{"name": "PASSWORD", "value": fmt.Sprintf("hidden #%016x", v.created.UnixNano())}}
	meta := map[string]any{
		"namespace": "shop", "name": name, "uid": name, "creationTimestamp": stamp(v.created),
		"ownerReferences": []any{map[string]any{"controller": true, "kind": "Workload", "name": "web", "uid": "w-1"}},
	}
	obj := map[string]any{"metadata": meta}
	owned := `{"f:revision":{}}`
	if c.sets {
		notes := map[string]any{revisionAnnotation: strconv.FormatInt(v.number, 10)}
		var past []string
		for _, n := range v.history {
			past = append(past, strconv.FormatInt(n, 10))
		}
		if past != nil {
			notes[historyAnnotation] = strings.Join(past, ",")
		}
		meta["annotations"] = notes
		temp["metadata"].(map[string]any)["labels"] = map[string]any{"app": "web", "pod-template-hash": name}
		obj["spec"] = map[string]any{"template": temp}
		owned = `{"f:metadata":{"f:annotations":{"f:deployment.kubernetes.io/revision":{}}}}`
	} else {
		temp["$patch"] = "replace"
		obj["revision"], obj["data"] = v.number, map[string]any{"spec": map[string]any{"template": temp}}
	}
	meta["managedFields"] = []any{map[string]any{
		"manager": "kube-controller-manager", "operation": "Update", "time": stamp(v.written), "fieldsV1": json.RawMessage(owned),
	}}
	raw, err := jsonmap.Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := jsonmap.DecodeObject(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// judge compares a claim with the true history.
func (c *controller) judge(e Entry) error {
	for _, m := range c.moves {
		if strconv.FormatInt(m.number, 10) != e.Data.Revision {
			continue
		}
		from := e.Time
		if !e.Since.IsZero() {
			from = e.Since
		}
		if at := second(m.at); at.Before(from) || at.After(e.Time) {
			return fmt.Errorf("between %v and %v, in truth %v", from, e.Time, m.at)
		}
		if e.Data.Previous == "" {
			return nil
		}
		if e.Data.Previous != strconv.FormatInt(m.number-1, 10) {
			return fmt.Errorf("after revision %s", e.Data.Previous)
		}
		if len(e.Fields) != 1 || e.Fields[0].Op != diff.Replace || e.Fields[0].From != m.from || e.Fields[0].To != m.to {
			return fmt.Errorf("differences %v, in truth %s to %s", e.Fields, m.from, m.to)
		}
		return nil
	}
	return fmt.Errorf("there was no such revision")
}

// TestRolloutsTruth: each rollout claimed from the revisions that are left happened, at that time and with those
// differences, and each revision made within the window and still there is claimed.
func TestRolloutsTruth(t *testing.T) {
	claims, intervals, compared := 0, 0, 0
	for seed := range uint64(600) {
		c := &controller{rand: rand.New(rand.NewPCG(seed, 2)), sets: seed%2 == 0, now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)} //nolint:gosec // reproducible
		for range 2 + c.rand.IntN(20) {
			c.step()
		}
		since := c.now.Add(-time.Duration(c.rand.IntN(600)) * time.Second)
		kind, owner := controllerRevisions, statefulSets
		if c.sets {
			kind, owner = replicaSets, deployments
		}
		rs := NewRevisions(since)
		for _, i := range c.rand.Perm(len(c.revisions)) {
			rs.Add(kind, c.object(t, c.revisions[i]))
		}
		claimed := map[string]bool{}
		for _, e := range rs.Rollouts(owner, event.Resource{UID: "w-1"}) {
			claims++
			if !e.Since.IsZero() {
				intervals++
			}
			if e.Data.Previous != "" {
				compared++
			}
			claimed[e.Data.Revision] = true
			if err := c.judge(e); err != nil {
				t.Errorf("seed %d: revision %s (%s): %v; %+v", seed, e.Data.Revision, e.Data.Evidence, err, c.moves)
			}
		}
		for _, v := range c.revisions {
			for _, m := range c.moves {
				known := c.sets || len(v.history) == 0 && second(v.written).Equal(second(v.created))
				if known && m.created && m.number > 1 && m.at.Equal(v.created) && !second(m.at).Before(second(since)) && !claimed[strconv.FormatInt(m.number, 10)] {
					t.Errorf("seed %d: revision %d of %v is not claimed", seed, m.number, m.at)
				}
			}
		}
	}
	if claims < 300 || intervals < 60 || compared < 150 {
		t.Errorf("too few claims to judge: %d, of them %d with intervals, %d compared", claims, intervals, compared)
	}
}

// TestJudgesObject: the judges of both histories refuse false claims.
func TestJudgesObject(t *testing.T) {
	c := &controller{rand: rand.New(rand.NewPCG(1, 1)), sets: true, now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)} //nolint:gosec // reproducible
	c.deploy("shop/app:1")
	c.now = c.now.Add(time.Minute)
	c.deploy("shop/app:2")
	rs := NewRevisions(time.Time{})
	for _, v := range c.revisions {
		rs.Add(replicaSets, c.object(t, v))
	}
	all := rs.Rollouts(deployments, event.Resource{UID: "w-1"})
	if len(all) != 1 || c.judge(all[0]) != nil {
		t.Fatalf("%+v: %v", all, c.judge(all[0]))
	}
	for why, spoil := range map[string]func(*Entry){
		"another time":     func(e *Entry) { e.Time = e.Time.Add(time.Second) },
		"another revision": func(e *Entry) { e.Data.Revision = "3" },
		"another value":    func(e *Entry) { e.Fields = []diff.Change{{Op: diff.Replace, From: "shop/app:0", To: "shop/app:2"}} },
		"another previous": func(e *Entry) { e.Data.Previous = "0" },
	} {
		e := all[0]
		if spoil(&e); c.judge(e) == nil {
			t.Errorf("the judge accepts %s", why)
		}
	}
}
