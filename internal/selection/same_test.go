package selection

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/meta"
)

var seed = flag.Uint64("seed", 0, "seed of the random selections; 0: a new one")

// random returns a source of numbers, and reports its seed if the test fails.
func random(t *testing.T) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with -seed %d", s)
		}
	})
	return rand.New(rand.NewPCG(s, 3))
}

// samples are values of each parameter.
var samples = map[string][]string{
	"type": {"deploy", "po", "deployments.apps", "Pod", "cm", "nothing"}, "name": {"web", "db", "a"},
	"cluster": {"prod", "dev"}, "namespace": {"shop", "pay", "kube-*", "?"}, "exclude-namespace": {"test", "team-[ab]"},
	"selector": {"app=web,tier!=debug", "!x"}, "field-selector": {"metadata.name=web", "metadata.namespace!=shop,metadata.name!=a"},
	"since": {"3h", "2026-03-01T08:00:00Z"}, "until": {"10m", "10:40"},
	"op":      {"created", "updated", "deleted", "gap", "snapshot"},
	"manager": {"kubectl*", "helm", "?"}, "path": {"spec.**.image", "spec.ports[port=80,protocol=TCP]", "data"},
	"where": {`op == "left"`, `resource.name == "a,b"`}, "severity": {"failure", "warning"}, "q": {"web app:1", "X"},
	"humans": {"true"}, "noise": {"true"},
}

// parameters returns random parameters. Named objects have one form: types and names.
func parameters(r *rand.Rand) url.Values {
	v := url.Values{}
	for _, p := range Parameters {
		all := slices.Clone(samples[p.Name])
		if r.IntN(3) > 0 || p.Name == "name" && !v.Has("type") {
			continue
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if p.Kind != "array" {
			v.Set(p.Name, all[0])
			continue
		}
		v[p.Name] = all[:1+r.IntN(len(all))]
	}
	if r.IntN(4) == 0 {
		v.Del("name")
		v["type"] = []string{"deploy/web", "cm/a", "nothing/x"}[:1+r.IntN(3)]
	}
	return v
}

// values writes options as parameters.
func values(o *Options) url.Values {
	v := url.Values{}
	for _, p := range Parameters {
		switch from := p.in(o).(type) {
		case *[]string:
			if len(*from) > 0 {
				v[p.Name] = *from
			}
		case *string:
			if *from != "" {
				v.Set(p.Name, *from)
			}
		case *bool:
			if *from {
				v.Set(p.Name, "true")
			}
		}
	}
	return v
}

// command writes parameters as a command line: flags, and TYPE[,TYPE…] [NAME…] or TYPE/NAME….
func command(r *rand.Rand, v url.Values) (args []string) {
	for _, p := range Parameters {
		all := v[p.Name]
		switch {
		case len(all) == 0 || p.Name == "type" || p.Name == "name" || p.Name == "q":
		case p.Kind == "boolean":
			args = append(args, "--"+p.Name)
		case p.Kind == "array" && !p.whole && r.IntN(2) == 0:
			args = append(args, "--"+p.Name, strings.Join(all, ","))
		default:
			for _, one := range all {
				args = append(args, "--"+p.Name, one)
			}
		}
	}
	if types := v["type"]; len(types) > 0 && strings.Contains(types[0], "/") {
		args = append(args, types...)
	} else if len(types) > 0 {
		args = append(append(args, strings.Join(types, ",")), v["name"]...)
	}
	return args
}

// kinds are those of a journal.
type kinds struct{}

func (kinds) Cluster() string { return "prod" }
func (kinds) Kinds(context.Context) ([]meta.Kind, error) {
	return []meta.Kind{
		{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}, {Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true},
		{Group: "extensions", Version: "v1beta1", Resource: "deployments", Kind: "Deployment", Namespaced: true},
	}, nil
}

func (kinds) ShortNames(_ context.Context, k meta.Kind) []string {
	return map[string][]string{"pods": {"po"}, "configmaps": {"cm"}, "deployments": {"deploy"}}[k.Resource]
}

// meaning is what a selection means, for comparisons.
func meaning(t *testing.T, o *Options, now time.Time) any {
	t.Helper()
	s, err := o.Parse(now)
	if err == nil {
		err = s.Resolve(t.Context(), kinds{})
	}
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return []any{
		s.Query, s.Namespaces, s.Noise, s.Types.Resources, s.Types.Unknown, s.Types.Names,
		fmt.Sprint(s.Paths), s.labels.String(), s.managers, s.humans, s.text, o.Where, s.where != nil,
	}
}

// TestURLs: the parameters of a selection, written from what was read, are read the same again.
func TestURLs(t *testing.T) {
	r := random(t)
	for range 500 {
		v := parameters(r)
		first, err := FromValues(v)
		if err != nil {
			t.Fatal(err)
		}
		written := values(&first)
		second, err := FromValues(written)
		if d := cmp.Diff(first, second, cmp.AllowUnexported(Options{})); d != "" || err != nil {
			t.Fatalf("%s, then %s: %v\n%s", v.Encode(), written.Encode(), err, d)
		}
		if again := values(&second); again.Encode() != written.Encode() {
			t.Fatalf("%s, then %s", written.Encode(), again.Encode())
		}
		for name := range v {
			if !written.Has(name) {
				t.Fatalf("%s: %s is lost", v.Encode(), name)
			}
		}
	}
}

// TestFlagsAndURLs: flags and the parameters of the same names select the same.
func TestFlagsAndURLs(t *testing.T) {
	r := random(t)
	now := time.Date(2026, 3, 1, 10, 45, 0, 0, time.UTC)
	for range 500 {
		v := parameters(r)
		v.Del("q") // only the page and the API have it
		inURL, err := FromValues(v)
		if err != nil {
			t.Fatal(err)
		}
		var flags Options
		fs := pflag.NewFlagSet("log", pflag.ContinueOnError)
		flags.AddPast(fs)
		flags.AddFlags(fs)
		fs.BoolVar(&flags.Noise, "noise", false, "")
		args := command(r, v)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		flags.Types = fs.Args()
		if d := cmp.Diff(meaning(t, &inURL, now), meaning(t, &flags, now), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%s and %q (-URL +flags):\n%s", v.Encode(), args, d)
		}
	}
	fs := pflag.NewFlagSet("log", pflag.ContinueOnError)
	var o Options
	o.AddPast(fs)
	o.AddFlags(fs)
	for _, p := range Parameters {
		if fs.Lookup(p.Name) == nil && !slices.Contains([]string{"type", "name", "q", "noise"}, p.Name) {
			t.Errorf("log has no flag --%s", p.Name)
		}
	}
}

// TestLive: what the server cannot select is matched as of a journal.
func TestLive(t *testing.T) {
	s, err := (&Options{Ops: []string{"updated"}, Managers: []string{"kubectl*"}, Paths: []string{"data"}, Severities: []string{"change"}}).Live()
	if err != nil {
		t.Fatal(err)
	}
	gap := change.Change{Meta: change.Meta{Op: event.Gap}}
	if s.Query.Has(&gap.Meta, "") {
		t.Error("an operation that was not requested")
	}
	if s, _ = (&Options{Paths: []string{"data"}, Severities: []string{"failure"}}).Live(); !s.Query.Has(&gap.Meta, "") || !s.Matches(&gap) {
		t.Error("missed versions may have been of the path, and of the severity")
	}
	if _, err := (&Options{Objects: Objects{Fields: "status.phase=Running"}}).Live(); err != nil {
		t.Errorf("the server selects by other fields, too: %v", err)
	}
	if _, err := (&Options{Severities: []string{"bad"}}).Live(); err == nil || !strings.HasPrefix(err.Error(), `--severity: unknown severity "bad"`) {
		t.Errorf("an unknown severity: %v", err)
	}
}
