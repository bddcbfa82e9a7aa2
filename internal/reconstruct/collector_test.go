package reconstruct

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// owned returns an object with a controller, created after ten and n seconds.
func owned(t *testing.T, name, owner string, n int) map[string]any {
	t.Helper()
	refs := ""
	if owner != "" {
		refs = fmt.Sprintf(`,"ownerReferences":[{"controller":true,"kind":"X","name":%q,"uid":%q}]`, owner, owner)
	}
	return decode(t, fmt.Sprintf(`{"metadata":{"name":%q,"uid":%[1]q,"creationTimestamp":"2026-03-01T10:00:%02dZ"%s,
		"managedFields":[{"manager":"m","operation":"Update","time":"2026-03-01T10:00:%02[2]dZ"}]}}`, name, n, refs))
}

func names(entries []Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Data.Resource.Name)
	}
	return strings.Join(all, " ")
}

func TestCollectorFollows(t *testing.T) {
	c := NewCollector(Options{Since: ten, Follow: true})
	// A pod may be listed before its owner.
	c.Add(pods, owned(t, "web-1-x", "web-1", 3), false)
	c.Add(pods, owned(t, "other-x", "other", 4), false)
	c.Add(pods, owned(t, "loop", "loop", 5), false)
	c.Add(events, decode(t, `{"metadata":{"name":"e1","uid":"e1"},"reason":"A","lastTimestamp":"2026-03-01T10:00:06Z","involvedObject":{"uid":"web-1-x"}}`), false)
	c.Add(events, decode(t, `{"metadata":{"name":"e2","uid":"e2"},"reason":"A","lastTimestamp":"2026-03-01T10:00:06Z","involvedObject":{"uid":"other-x"}}`), false)
	c.Add(replicaSets, owned(t, "web-1", "web", 2), false)
	c.Add(deployments, owned(t, "web", "", 1), true)
	if entries, _ := c.Take(); names(entries) != "web web-1 web-1-x e1" {
		t.Errorf("got %s", names(entries))
	}
	if entries, dropped := c.Take(); len(entries) > 0 || dropped > 0 || !c.Empty() {
		t.Errorf("taken twice: %s", names(entries))
	}
}

func TestCollectorLimit(t *testing.T) {
	c := NewCollector(Options{Since: ten, Limit: 3})
	for n := range 20 {
		c.Add(pods, owned(t, fmt.Sprint("p", n), "", (n*7)%20), false)
		if len(c.entries) > 6 {
			t.Fatalf("%d entries are held", len(c.entries))
		}
	}
	if entries, dropped := c.Take(); names(entries) != "p11 p14 p17" || dropped != 17 {
		t.Errorf("got %s, %d dropped", names(entries), dropped)
	}
}

func TestCollectorEvidence(t *testing.T) {
	c := NewCollector(Options{Since: ten})
	set := func(name, owner string, number, image string, n int) map[string]any {
		obj := owned(t, name, owner, n)
		change.Metadata(obj)["annotations"] = map[string]any{revisionAnnotation: number}
		obj["spec"] = map[string]any{"template": template(image)}
		return obj
	}
	c.Add(deployments, owned(t, "web", "", 1), false)
	for i, uid := range []string{"web", "stranger"} {
		c.AddEvidence(replicaSets, set(fmt.Sprint("a", i), uid, "1", "app:1", 1))
		c.AddEvidence(replicaSets, set(fmt.Sprint("b", i), uid, "2", "app:2", 9))
	}
	if got := strings.Join(c.Workloads(), " "); got != "Deployment.apps" || len(c.revisions.owners) != 1 {
		t.Errorf("workloads %s; %d owners have revisions", got, len(c.revisions.owners))
	}
	entries, _ := c.Take()
	if len(entries) != 2 || entries[1].Data.Fact != event.FactRollout || say(entries[1]) != "10:00:09 rollout ? 2 spec.template.spec.containers[name=app].image=app:2" {
		t.Errorf("%+v", entries)
	}
	out := entries[1].Event("prod").Data
	if len(out.Changes) != 1 || out.Changes[0].From != "app:1" || out.Changes[0].Manager != "?" || out.Previous != "1" || out.Owns != nil {
		t.Errorf("%+v", out)
	}
}

func TestCollectorSelects(t *testing.T) {
	obj := `{"metadata":{"name":"a","uid":"a","creationTimestamp":"2026-03-01T09:00:00Z","managedFields":[
		{"manager":"kubectl-set","operation":"Update","time":"2026-03-01T10:01:00Z","fieldsV1":{"f:spec":{"f:a":{},"f:b":{}}}},
		{"manager":"kubelet","operation":"Update","subresource":"status","time":"2026-03-01T10:02:00Z","fieldsV1":{"f:status":{"f:images":{}}}}]},
		"spec":{"a":1,"b":2},"status":{"images":[],"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-03-01T10:03:00Z"}]}}`
	p := func(text string) []diff.Pattern {
		pattern, err := diff.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return []diff.Pattern{pattern}
	}
	const set, state, ready = "10:01:00 written kubectl-set spec.a=1 spec.b=2", "10:02:00 written kubelet status status.images=[]", "10:03:00 condition Ready=False (failure)"
	for _, tc := range []struct {
		why  string
		o    Options
		want []string
	}{
		{"everything", Options{}, []string{set, state, ready}},
		{"until: exclusive", Options{Until: ten.Add(120e9)}, []string{set}},
		{"a path", Options{Only: p("spec.b")}, []string{"10:01:00 written kubectl-set spec.b=2"}},
		{"an ignored path leaves facts", Options{Ignore: p("spec")}, []string{state, ready}},
		{"a manager", Options{Managers: []string{"kubectl*"}}, []string{set}},
		{"a severity", Options{Severities: []event.Severity{event.Failure}}, []string{ready}},
		{"what people do", Options{Humans: true}, []string{set}},
	} {
		tc.o.Since = ten
		c := NewCollector(tc.o)
		c.Add(nodes, decode(t, obj), true)
		entries, _ := c.Take()
		var got []string
		for _, e := range entries {
			got = append(got, say(e))
		}
		if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", tc.why, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
}
