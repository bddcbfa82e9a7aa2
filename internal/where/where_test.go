package where

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

func update() *change.Change {
	return &change.Change{
		Meta: change.Meta{
			Op: event.Updated, Kind: change.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment"},
			Namespace: "shop", Name: "web", UID: "u", Owner: &event.Owner{Kind: "Shop", Name: "main"},
		},
		Fields: []change.FieldChange{
			{Change: diff.Change{Path: path("metadata.generation"), Op: diff.Replace, From: int64(1), To: int64(2)}, Quiet: true},
			{Change: diff.Change{Path: path("spec.replicas"), Op: diff.Replace, From: int64(3), To: int64(5)}, Manager: "kubectl-scale", Subresource: "scale"},
			{Change: diff.Change{Path: path("spec.template.spec.containers[name=side]"), Op: diff.Add, To: map[string]any{"name": "side", "image": "x:1"}}, Manager: "helm"},
		},
		Before: map[string]any{"spec": map[string]any{"replicas": int64(3)}},
		After: map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"a.b/tier": "web"}},
			"spec":     map[string]any{"replicas": 5.0, "paused": true, "list": []any{int64(1), map[string]any{"name": "x"}}},
		},
	}
}

func path(text string) diff.Path {
	p, err := diff.ParsePath(text)
	if err != nil {
		panic(err)
	}
	return p
}

// TestSeverity: severity is the change's.
func TestSeverity(t *testing.T) {
	for text, want := range map[string]bool{
		`severity == "warning"`: true, `severity in ["failure", "warning"]`: true, `severity != "warning"`: false, `severity == "change"`: false,
	} {
		e, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Match(&change.Change{Meta: change.Meta{Op: event.Absent, Absence: &event.Absence{Incomplete: 1}}}); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestMatch(t *testing.T) {
	deployment := map[string]any{"spec": map[string]any{"replicas": int64(1), "nothing": nil}, "status": map[string]any{}}
	pod := func(op event.Op) change.Meta {
		return change.Meta{Op: op, Kind: change.Kind{Version: "v1", Resource: "pods", Kind: "Pod"}, Name: "p"}
	}
	of := func(cluster string) *change.Change {
		c := update()
		c.Kind.Cluster = cluster
		return c
	}
	created := &change.Change{Meta: pod(event.Created), After: deployment}
	deleted := &change.Change{Meta: pod(event.Deleted), Before: deployment}
	gap := &change.Change{Meta: pod(event.Gap)}
	for _, tc := range []struct {
		why, expr string
		data      *change.Change
		want      bool
	}{
		{"the sample of the design", `op == "deleted" || touches("spec.**")`, update(), true},
		{"its other half", `op == "deleted" || touches("status")`, deleted, true},
		{"neither", `op == "deleted" || touches("status")`, update(), false},

		{"the cluster", `cluster == "prod-eu" && cluster.startsWith("prod")`, of("prod-eu"), true},
		{"another cluster", `cluster in ["prod-eu", "prod-us"]`, of("staging"), false},
		{"names", `resource.kind == "Deployment" && resource.namespace.startsWith("sh") && resource.group in ["apps", ""]`, update(), true},
		{"an absent name is empty", `resource.namespace == "" && !has(resource.namespace)`, created, true},
		{"the owner", `resource.owner.kind == "Shop" && has(resource.owner)`, update(), true},
		{"an absent owner has no names", `resource.owner.kind == "" && !has(resource.owner)`, created, true},

		{"a change by its path", `changes.exists(c, c.path == "spec.replicas" && c.to > c.from)`, update(), true},
		{"by its manager", `changes.exists(c, c.manager.matches("^kubectl") && c.subresource == "scale")`, update(), true},
		{"by a nested value", `changes.exists(c, c.op == "add" && has(c.to.image) && c.to.image == "x:1")`, update(), true},
		{"an add has no from", `changes.exists(c, c.op == "add" && c.from == null && !has(c.from))`, update(), true},
		{"quiet changes are included", `changes.all(c, !c.quiet)`, update(), false},
		{"counted", `size(changes) == 3 && changes[1].path == "spec.replicas"`, update(), true},
		{"a creation has no field changes", `size(changes) == 0`, created, true},
		{"filtered and mapped", `changes.filter(c, c.op == "add").map(c, c.manager) == ["helm"]`, update(), true},

		{"before and after", `after.spec.replicas > before.spec.replicas`, update(), true},
		{"numbers of different types", `after.spec.replicas == 5 && before.spec.replicas == 3`, update(), true},
		{"a boolean", `after.spec.paused == true`, update(), true},
		{"a label", `after.metadata.labels["a.b/tier"] == "web"`, update(), true},
		{"an element", `after.spec.list.exists(e, type(e) == map && e.name == "x")`, update(), true},
		{"an absent object is empty", `size(before) == 0 && !has(before.spec)`, created, true},
		{"the other", `size(after) == 0 && has(before.spec)`, deleted, true},

		{"a field", `touches("spec.replicas")`, update(), true},
		{"another", `touches("spec.strategy")`, update(), false},
		{"inside an added value", `touches("spec.template.spec.containers[*].image")`, update(), true},
		{"quiet changes do not count", `touches("metadata")`, update(), false},
		{"a new object has it", `touches("spec.replicas")`, created, true},
		{"a new object lacks it", `touches("spec.nothing") || touches("data")`, created, false},
		{"a deleted object had it", `touches("spec.replicas")`, deleted, true},
		{"a gap touches nothing", `touches("**")`, gap, false},
		{"within a loop", `changes.exists(c, touches("spec.replicas") && c.op == "add")`, update(), true},
		{"two of them", `touches("status") || touches("spec.replicas")`, update(), true},

		{"structs are equal by their fields", `resource == resource && changes[0] != changes[1]`, update(), true},
		{"a struct has a type", `type(resource) == type(resource) && type(resource) != type(changes[0])`, update(), true},
		{"a struct among others", `[resource, 1].exists(e, e == resource)`, update(), true},
		{"a struct as dyn", `[dyn(resource), dyn(1)][0].kind == "Deployment" && has(dyn(resource).kind)`, update(), true},
	} {
		e, err := Compile(tc.expr)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if got, err := e.Match(tc.data); got != tc.want || err != nil {
			t.Errorf("%s: %s = %v, %v; want %v", tc.why, tc.expr, got, err, tc.want)
		}
	}
}

// TestNotComputed lists expressions that fail on a change: they do not match, and the error says why.
func TestNotComputed(t *testing.T) {
	for _, tc := range []struct{ why, expr, want string }{
		{"an absent key", `after.spec.strategy == "x"`, "no such key: strategy"},
		{"in an absent object", `before.metadata.name == "x"`, "no such key: metadata"},
		{"another type", `after.spec > 3`, "no such overload"},
		{"a division by zero", `1 / 0 == 1`, "division by zero"},
		{"an index", `changes[9].path == ""`, "index out of bounds"},
		{"a field of a dyn", `dyn(resource).nam == ""`, "no such field"},
		{"a field that is not a string", `dyn(resource)[3] == ""`, "no such overload"},
		{"a regular expression from the change", `"x".matches(resource.name + "[")`, "regexp"},
	} {
		e, err := Compile(tc.expr)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		got, err := e.Match(update())
		if got || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s = %v, %v; want an error that says %q", tc.why, tc.expr, got, err, tc.want)
		}
	}
}

func TestCostIsBounded(t *testing.T) {
	list := make([]any, 2000)
	for i := range list {
		list[i] = int64(i)
	}
	d := &change.Change{Meta: change.Meta{Op: event.Created}, After: map[string]any{"list": list}}
	for _, tc := range []struct {
		why, expr string
		fails     bool
	}{
		{"one loop", `after.list.all(a, a < 5000)`, false},
		{"loops in loops", `after.list.all(a, after.list.all(b, after.list.all(c, a + b + c >= 0)))`, true},
		{"lists that double", `[after.list].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a + a + a).exists(l, l.map(x, l).map(x, x + l).size() > 0)`, true},
	} {
		e, err := Compile(tc.expr)
		if err != nil {
			t.Fatalf("%s: %v", tc.why, err)
		}
		e.limit = time.Hour
		got, err := e.Match(d)
		if failed := err != nil && strings.Contains(err.Error(), "cost limit exceeded"); failed != tc.fails || got == tc.fails {
			t.Errorf("%s: %v, %v", tc.why, got, err)
		}
	}
}

// wide returns an update of many fields.
func wide(fields int) *change.Change {
	d := &change.Change{Meta: change.Meta{Op: event.Updated}}
	for i := range fields {
		d.Fields = append(d.Fields, change.FieldChange{Change: diff.Change{Path: path(fmt.Sprintf("data.k%d", i)), Op: diff.Add, To: "v"}, Manager: "m"})
	}
	return d
}

// TestVariablesAreMadeOnce: a loop that reads a variable takes time linear in the variable's length.
func TestVariablesAreMadeOnce(t *testing.T) {
	e, err := Compile(`changes.all(c, c.manager == changes[0].manager)`)
	if err != nil {
		t.Fatal(err)
	}
	e.limit = time.Hour
	allocs := func(fields int) float64 {
		d := wide(fields)
		return testing.AllocsPerRun(1, func() {
			if ok, err := e.Match(d); !ok || err != nil {
				t.Errorf("%d fields: %v, %v", fields, ok, err)
			}
		})
	}
	if few, many := allocs(200), allocs(4000); many > 40*few {
		t.Errorf("20 times as many fields take %.0f allocations instead of %.0f", many, few)
	}
}

// TestTimeIsBounded: CEL's cost of a comparison counts the keys, not the values below them.
func TestTimeIsBounded(t *testing.T) {
	e, err := Compile(`changes.all(c, before == after)`)
	if err != nil {
		t.Fatal(err)
	}
	d := wide(5000)
	data := map[string]any{}
	for i := range 5000 {
		data[fmt.Sprint(i)] = "x"
	}
	d.Before, d.After = map[string]any{"data": data}, map[string]any{"data": maps.Clone(data)}
	e.limit = 50 * time.Millisecond
	start := time.Now()
	if ok, err := e.Match(d); ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v", ok, err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

func BenchmarkLoops(b *testing.B) {
	for _, c := range []struct {
		name, expr string
		data       *change.Change
	}{
		{"reread2000", `changes.all(c, c.manager == changes[0].manager)`, wide(2000)},
		{"wide20000", `changes.all(c, c.manager == "m")`, wide(20000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			e, err := Compile(c.expr)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := e.Match(c.data); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

func TestReads(t *testing.T) {
	e, err := Compile(`op == "deleted" || changes.exists(c, c.to == before.spec.x) || touches("spec")`)
	if err != nil {
		t.Fatal(err)
	}
	for variable, want := range map[string]bool{"op": true, "changes": true, "before": true, "after": false, "resource": false} {
		if got := e.Reads(variable); got != want {
			t.Errorf("Reads(%s) = %v, want %v", variable, got, want)
		}
	}
	if !strings.HasPrefix(e.String(), `op == "deleted"`) {
		t.Errorf("String() = %s", e)
	}
}

// TestConcurrently is for the race detector: pumps share the environment only, and log -f may share an expression.
func TestConcurrently(t *testing.T) {
	e, err := Compile(`touches("spec.replicas") && changes.exists(c, c.quiet)`)
	if err != nil {
		t.Fatal(err)
	}
	d := update()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if other, err := Compile(`op == "updated"`); err != nil {
				t.Error(err)
			} else if ok, err := other.Match(d); !ok || err != nil {
				t.Error(ok, err)
			}
			if ok, err := e.Match(d); !ok || err != nil {
				t.Error(ok, err)
			}
		})
	}
	group.Wait()
}

func BenchmarkMatch(b *testing.B) {
	d := update()
	for name, text := range map[string]string{
		"op":      `op == "deleted" && resource.kind == "Pod"`,
		"touches": `op == "deleted" || touches("status.**")`,
		"changes": `changes.exists(c, c.manager == "nobody")`,
	} {
		e, err := Compile(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := e.Match(d); ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
