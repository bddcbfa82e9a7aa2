package selection

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// TestValues: the parameters of a URL become options, and each of Parameters is one.
func TestValues(t *testing.T) {
	for query, want := range map[string]Options{
		"":                                   {},
		"type=deploy%2Frs&type=pods%2Fa%2Cb": {Types: []string{"deploy/rs", "pods/a", "b"}},
		"type=deploy,rs&type=po&name=web":    {Types: []string{"deploy,rs,po"}, Names: []string{"web"}},
		"name=web":                           {Names: []string{"web"}},
		"cluster=prod,dev&namespace=a,b&namespace=c*&exclude-namespace=d&selector=app%3Dx,y!%3D1&field-selector=metadata.name%3Da": {
			Objects: Objects{Clusters: []string{"prod", "dev"}, Namespaces: []string{"a", "b", "c*"}, Exclude: []string{"d"}, Labels: "app=x,y!=1", Fields: "metadata.name=a"}},
		"since=yesterday+10:42&until=5m&op=created,deleted&manager=kubectl*": {
			Since: "yesterday 10:42", Until: "5m", Ops: []string{"created", "deleted"}, Managers: []string{"kubectl*"}},
		"path=spec.ports[port%3D80,protocol%3DTCP]&path=&where=op+%3D%3D+%22left%22&severity=failure&q=a+b&humans=1&noise=true&other=x": {
			Paths: []string{"spec.ports[port=80,protocol=TCP]"}, Where: `op == "left"`, Severities: []string{"failure"}, Text: "a b", Humans: true, Noise: true},
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := FromValues(v)
		opts := cmp.Options{cmpopts.IgnoreUnexported(Options{}), cmpopts.EquateEmpty()}
		if d := cmp.Diff(want, got, opts); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", query, err, d)
		}
	}
	for _, p := range Parameters {
		name := p.Name
		if got, err := FromValues(url.Values{name: {"true"}}); err != nil || reflect.DeepEqual(got, Options{parameters: true}) {
			t.Errorf("%s changes nothing (%v)", name, err)
		}
	}
}

// TestErrors: an error names the flag or the parameter that is wrong.
func TestErrors(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 45, 0, 0, time.UTC)
	for query, want := range map[string]string{
		"op=exploded":                        `op: unknown operation "exploded"`,
		"since=noon":                         `since: "noon" is not a time`,
		"since=10:30&until=10:20":            "since is not before until",
		"path=..":                            "path: ",
		"where=op+%3D+1":                     "where: ",
		"severity=bad":                       `severity: unknown severity "bad"`,
		"manager=[":                          `manager: "[" is not a valid pattern`,
		"field-selector=status.phase%3DGone": "field-selector: the journal selects by metadata.name and metadata.namespace only; for status.phase say where",
		"namespace=..":                       `".." is not a namespace name`,
		"type=deploy/web&name=web":           "name and TYPE/NAME exclude each other",
		"humans=perhaps":                     `humans: "perhaps" is not true or false`,
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		o, err := FromValues(v)
		if err == nil {
			_, err = o.Parse(now)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	if _, err := (&Options{Ops: []string{"exploded"}}).Parse(now); err == nil || !strings.HasPrefix(err.Error(), "--op: ") {
		t.Errorf("a flag: %v", err)
	}
}

// TestText: each word of a free text must occur somewhere in the shown parts of a change.
func TestText(t *testing.T) {
	field := func(path string, from, to any, quiet bool) change.FieldChange {
		f := change.FieldChange{Manager: "kubectl-set", Quiet: quiet}
		f.Path, f.From, f.To = diff.Path{{Name: path}}, from, to
		return f
	}
	c := change.Change{Meta: change.Meta{Op: event.Updated, Namespace: "shop", Name: "web", Manager: "kubectl-set",
		Kind: change.Kind{Kind: "Deployment", Resource: "deployments"}},
		Fields: []change.FieldChange{field("image", "app:1", map[string]any{"tag": "App:2"}, false), field("heartbeat", nil, "12:00", true)}}
	for text, want := range map[string]bool{
		"": true, "WEB": true, "shop deployment": true, "app:1": true, "app:2 kubectl": true, "image": true,
		"web absent": false, "heartbeat": false, "12:00": false,
	} {
		s, err := (&Options{Text: text}).Parse(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Matches(&c); got != want || s.ReadsObjects() != (text != "") {
			t.Errorf("%q matches: %v", text, got)
		}
		if noisy, _ := (&Options{Text: text, Noise: true}).Parse(time.Now()); text == "heartbeat" && !noisy.Matches(&c) {
			t.Error("with noise, quiet fields are shown, and so are searched")
		}
	}
}
