package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tattler-dev/tattler"

// row is one rule about imports. Patterns are as in the go command: a/... is a and everything below it; ./a is
// in this module; std is the standard library.
type row struct {
	who   string   // the packages it applies to
	but   []string // exceptions from who
	only  []string // the permitted direct imports, besides each other; nil: anything
	never []string // packages that may not be linked, directly or indirectly
	why   string
}

var rows = []row{
	{
		who:  "./informer/...",
		but:  []string{"./informer/clientgo/...", "./informer/informertest/...", "./informer/informerprom/...", "./informer/controller/...", "./informer/kinds/..."},
		only: []string{"std", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/...", "github.com/klauspost/compress/...", "github.com/cespare/xxhash/v2", "sigs.k8s.io/json", "google.golang.org/protobuf/encoding/protowire", "./internal/delta", "./internal/filelock", "./internal/jsonscan"},
		why:  "users of the library must not inherit the tool or its dependencies; the delta codec, the file lock and the JSON scanner are shared with it",
	},
	{
		who: "./informer/feed",
		only: []string{
			"std", "k8s.io/apimachinery/...", "./informer", "./informer/internal/raw", "./informer/internal/store",
			"./informer/internal/compact", "./informer/internal/checkpoint", "./informer/internal/wire",
		},
		why: "it packages the batches of a source, and does not depend on how a source reads",
	},
	{
		who:   "./informer",
		never: []string{"./informer/feed"},
		why:   "controllers do not need what the daemon does",
	},
	{
		who:  "./informer/controller/...",
		only: []string{"std", "./informer", "./diff", "k8s.io/apimachinery/...", "k8s.io/client-go/util/...", "k8s.io/client-go/tools/leaderelection/..."},
		why:  "it is a user of the library, as any controller is; only its path predicates need more than that",
	},
	{
		who:   "./informer",
		never: []string{"./informer/controller/...", "k8s.io/client-go/tools/leaderelection/..."},
		why:   "programs that only read and watch do not inherit the dependencies of controllers",
	},
	{
		who:  "./informer/kinds/...",
		only: []string{"std", "./informer", "k8s.io/apimachinery/...", "k8s.io/client-go/discovery", "k8s.io/client-go/rest"},
		why:  "it is a user of the library, as any program is",
	},
	{
		who:   "./informer",
		never: []string{"./informer/kinds/...", "k8s.io/client-go/discovery/..."},
		why:   "programs that name the kinds they watch do not inherit discovery, which links OpenAPI documents",
	},
	{
		who: "./informer/informertest/...",
		only: []string{
			"std", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/...", "sigs.k8s.io/json",
			"google.golang.org/protobuf/encoding/protowire", "gopkg.in/evanphx/json-patch.v4",
		},
		why: "it applies JSON patches with the library that API servers use, and imports no part of the engine that it tests",
	},
	{
		who:  "./informer/informerprom/...",
		only: []string{"std", "./informer", "github.com/prometheus/client_golang/prometheus/..."},
		why:  "metrics for programs that use Prometheus's client anyway: others do not inherit it, and it only uses the public library",
	},
	{
		who:  "./informer/clientgo/...",
		only: []string{"std", "./informer/internal/...", "k8s.io/apimachinery/...", "k8s.io/client-go/...", "k8s.io/klog/v2"},
		never: []string{
			"k8s.io/client-go/informers/...", "k8s.io/client-go/dynamic/...", "k8s.io/client-go/metadata/...",
			"k8s.io/client-go/kubernetes/...", "sigs.k8s.io/controller-runtime/...",
		},
		why: "it speaks client-go's interfaces and needs nothing that implements them: a program brings its own clients",
	},
	{
		who:   "./...",
		never: []string{"./informer/clientgo/..."},
		why:   "it is for programs that have client-go's tools anyway: users of the engine itself do not inherit them",
	},
	{
		who: "./...",
		but: []string{"./informer/clientgo/...", "./informer/controller/...", "./internal/informerdiff"},
		never: []string{
			"k8s.io/client-go/tools/cache/...", "k8s.io/client-go/informers/...", "k8s.io/client-go/dynamic/...",
			"k8s.io/client-go/kubernetes", "k8s.io/client-go/kubernetes/typed/...",
		},
		why: "the engine replaces them: behind one of their decoders or queues its promises would not hold. The locks of client-go's leader election link the typed clients, which a controller has anyway",
	},
	{
		who:   "./...",
		never: []string{"./devcluster/...", "./bench/...", "./compat/...", "./tools/...", "./examples/..."},
		why:   "they are separate modules, so that go install and go get of this one stay light",
	},
	{
		who: "./...",
		never: []string{
			"./cloud/...", "github.com/aws/...", "cloud.google.com/...", "google.golang.org/api/...", "github.com/Azure/...", "gocloud.dev/...",
		},
		why: "the SDKs of cloud providers are in the module cloud, so that the default binary stays free of them",
	},
	{
		who:   "./...",
		never: []string{"testing", "./informer/informertest/...", "./informer/internal/samples", "./internal/goldentest", "./internal/history/historytest", "./internal/leaktest", "./internal/informerdiff", "./internal/sink/sinktest/...", "./internal/web/client/clienttest/...", "github.com/google/go-cmp/...", "github.com/rogpeppe/go-internal/...", "go.uber.org/goleak"},
		why:   "tests and fakes do not ship",
	},
	{
		who:  "./internal/delta",
		only: []string{"std"},
		why:  "the library shares it with the journal, so it brings nothing along",
	},
	{
		who:  "./diff/...",
		only: []string{"std"},
		why:  "a diff is a function of two objects: anyone can use it without Kubernetes",
	},
	{
		who:  "./event/...",
		only: []string{"std"},
		why:  "a consumer of events needs their types and nothing else",
	},
	{
		who:  "./internal/capture/redact/...",
		only: []string{"std", "./diff", "./internal/rules", "./internal/jsonmap", "./internal/jsonscan", "go.yaml.in/yaml/v3"},
		why:  "the code that redacts Secrets is small enough to be read completely, and reaches no network, disk or log",
	},
	{
		who:  "./internal/quiet/...",
		only: []string{"std", "./diff", "./internal/rules", "go.yaml.in/yaml/v3"},
		why:  "rules are data: they are tested without a cluster",
	},
	{
		who:  "./internal/rules/...",
		only: []string{"std", "./diff", "go.yaml.in/yaml/v3"},
		why:  "rules are data: they are tested without a cluster",
	},
	{
		who:  "./internal/managers/...",
		only: []string{"std", "./diff", "./event", "./internal/jsonmap"},
		why:  "ownership follows from an object alone",
	},
	{
		who:  "./internal/openapi/...",
		only: []string{"std", "./diff"},
		why:  "the caller fetches the documents: the journal's schemas need no cluster",
	},
	{
		who:  "./internal/change/...",
		only: []string{"std", "./diff", "./event", "./internal/managers", "./internal/meta", "./internal/quiet", "./internal/severity", "k8s.io/apimachinery/pkg/runtime/schema"},
		why:  "a change is built from two versions, wherever they come from: it reaches no network and no store",
	},
	{
		who:  "./internal/meta",
		only: []string{"std", "./event"},
		why:  "the journal and the changes share it, and do not import each other",
	},
	{
		who:  "./internal/severity/...",
		only: []string{"std", "./event", "./internal/health", "./internal/jsonmap"},
		why:  "a change is judged by its two objects alone, so that it has one severity everywhere",
	},
	{
		who:  "./internal/health/...",
		only: []string{"std", "./event", "./internal/jsonmap"},
		why:  "what is wrong with an object is what the object says",
	},
	{
		who:  "./internal/story/...",
		only: []string{"std", "./diff", "./event", "./internal/change", "./internal/health", "./internal/jsonmap", "./internal/owners"},
		why:  "stories follow from changes alone: no clock, no store, no layout",
	},
	{
		who:  "./internal/where/...",
		only: []string{"std", "./diff", "./event", "./internal/change", "./internal/spell", "cel.dev/cel-go/..."},
		why:  "an expression is checked without a cluster, and compares a change as it was built, not its text",
	},
	{
		who: "./internal/config/...",
		only: []string{
			"std", "./diff", "./internal/capture/redact", "./internal/rules", "./internal/selection", "./internal/spell", "./internal/where",
			"go.yaml.in/yaml/v3",
		},
		why: "a file is checked without a cluster, and a new kind of sink needs no change here",
	},
	{
		who:  "./internal/spell/...",
		only: []string{"std"},
		why:  "it compares words",
	},
	{
		who:  "./internal/jsonmap/...",
		only: []string{"std", "./internal/jsonscan", "k8s.io/apimachinery/pkg/util/json"},
		why:  "a JSON decoder, its scanner, the decoder that it must agree with, and the reading of what it makes",
	},
	{
		who:  "./internal/jsonscan",
		only: []string{"std"},
		why:  "it reads bytes, for the library as well",
	},
	{
		who:  "./internal/delta/...",
		only: []string{"std"},
		why:  "a codec of two texts",
	},
	{
		who:  "./internal/journal/...",
		only: []string{"std", "./event", "./internal/delta", "./internal/filelock", "./internal/meta", "./internal/owners", "./internal/selection", "./internal/story", "./internal/syncdir", "github.com/klauspost/compress/...", "github.com/ncruces/go-sqlite3/...", "golang.org/x/sys/..."},
		why:  "plain structs in and out: what is on disk does not depend on how it was seen; it compiles the queries of selection, and writes the stories with the changes that prove them",
	},
	{
		who:  "./internal/sink",
		only: []string{"std", "./event"},
		why:  "a sink knows messages, not the journal or a cluster",
	},
	{
		who:  "./internal/deliver/...",
		only: []string{"std", "./event", "./internal/change", "./internal/sink"},
		why:  "the pump reaches the journal through its own interface",
	},
	{
		who: "./internal/trace",
		only: []string{
			"std", "./event", "./internal/meta", "./internal/sink", "./internal/sink/otlp",
			"go.opentelemetry.io/proto/otlp/...", "google.golang.org/protobuf/proto",
		},
		why: "spans are made of identities alone: it reaches no objects, journal or cluster",
	},
	{
		who:   "./informer/...",
		never: []string{"go.opentelemetry.io/...", "google.golang.org/grpc/..."},
		why:   "traces are the tool's",
	},
	{
		who:  "./internal/rights",
		only: []string{"std", "./internal/capture", "k8s.io/api/authentication/v1", "k8s.io/api/authorization/v1", "k8s.io/apimachinery/...", "k8s.io/client-go/discovery", "k8s.io/client-go/rest"},
		why:  "what a daemon may do follows from what it watches; the daemon and the verbs that explain it share the answer",
	},
	{
		who:  "./internal/control",
		only: []string{"std"},
		why:  "clients of a daemon link neither the journal nor the engine",
	},
	{
		who:  "./internal/control/sinkadmin",
		only: []string{"std", "./event", "./internal/control", "./internal/deliver", "./internal/journal", "./internal/spell"},
		why:  "orders work the same with a daemon and without one",
	},
	{
		who:  "./internal/ops/...",
		only: []string{"std", "./internal/control", "github.com/prometheus/client_golang/..."},
		why:  "a platform's view is derived from the status alone: it reaches no journal and no cluster",
	},
	{
		who:  "./internal/web/auth/...",
		only: []string{"std", "./internal/access", "./internal/web/share", "k8s.io/api/authentication/v1", "k8s.io/api/authorization/v1", "k8s.io/apimachinery/...", "k8s.io/client-go/rest", "k8s.io/client-go/kubernetes/scheme"},
		why:  "what decides who sees what is small enough to be read completely, and knows nothing about pages",
	},
	{
		who:  "./internal/history/...",
		only: []string{"std", "./diff", "./event", "./internal/openapi", "./internal/quiet", "./internal/change", "./internal/journal", "./internal/jsonmap", "./internal/relations", "./internal/selection", "./internal/story", "./internal/usage"},
		why:  "reading the journal needs no cluster",
	},
	{
		who:  "./internal/reconstruct/...",
		only: []string{"std", "./diff", "./event", "./internal/change", "./internal/jsonmap", "./internal/managers", "./internal/quiet"},
		why:  "what an object records follows from the object alone: it makes no requests and reads no store",
	},
	{
		who:  "./internal/access",
		only: []string{"std", "./event", "./internal/history", "./internal/journal", "./internal/selection", "./internal/story"},
		why:  "the code that decides what a viewer sees is small enough to be read completely, and asks others for rights; it adds a scope to the queries of selection",
	},
	{
		who:   "./internal/web/api/...",
		never: []string{"./internal/daemon/...", "./internal/deliver/...", "./internal/config/...", "./internal/render/..."},
		why:   "it reads a journal through the rights of a viewer, whoever serves it",
	},
	{
		who:  "./internal/web/client",
		only: []string{"std", "./internal/control", "./internal/history", "./internal/journal", "./internal/story", "./internal/web/api"},
		why:  "it knows the forms of the API, and no cluster: the caller brings the connection",
	},
	{
		who: "./internal/selection",
		only: []string{
			"std", "./diff", "./event", "./internal/change", "./internal/managers", "./internal/meta", "./internal/spell", "./internal/usage", "./internal/when", "./internal/where",
			"github.com/spf13/pflag", "k8s.io/apimachinery/pkg/fields", "k8s.io/apimachinery/pkg/labels", "k8s.io/apimachinery/pkg/selection", "k8s.io/apimachinery/pkg/util/validation",
		},
		why: "a file, a URL and a command line select the same: it is below those who watch, record and read, and knows no server, no SQL and no verb",
	},
	{
		who:   "./internal/...",
		but:   []string{"./internal/cli/..."},
		never: []string{"./internal/cli/..."},
		why:   "verbs are on top: what they share with others, such as selections and times, is below both",
	},
	{
		who:  "./internal/usage",
		only: []string{"std"},
		why:  "everything that reads what a user wrote has its error",
	},
	{
		who:  "./internal/when",
		only: []string{"std"},
		why:  "times are read alike on a command line and in a URL",
	},
	{
		who: "./internal/web",
		only: []string{
			"std", "./diff", "./event", "./internal/access", "./internal/change", "./internal/control", "./internal/control/sinkadmin", "./internal/history", "./internal/journal",
			"./internal/managers", "./internal/quiet", "./internal/relations", "./internal/render", "./internal/selection", "./internal/story", "./internal/usage", "./internal/when", "./internal/web/auth",
		},
		why: "the page reads a journal through the Source that limits it to what a viewer may see, and reaches no cluster; orders, and the times in them, are those of the command line",
	},
	{
		who:  "./internal/relations",
		only: []string{"std", "./internal/jsonmap", "k8s.io/apimachinery/pkg/labels", "k8s.io/apimachinery/pkg/apis/meta/v1"},
		why:  "relations follow from the objects alone, wherever they come from",
	},
	{
		who:   "./internal/capture/...",
		never: []string{"./internal/render/...", "./internal/cli/...", "./internal/config/...", "./internal/journal/...", "./internal/deliver/..."},
		why:   "a change is the same however it is queried and shown",
	},
	{
		who:  "./internal/render/...",
		only: []string{"std", "./diff", "./event", "./internal/change", "./internal/health", "./internal/jsonmap", "./internal/severity", "./internal/story/...", "./internal/managers", "./internal/reconstruct", "golang.org/x/term", "sigs.k8s.io/yaml", "k8s.io/apimachinery/pkg/util/duration"},
		why:  "a renderer sees finished changes; it asks no server and reads no store",
	},
	{
		who:  "./cmd/...",
		only: []string{"std", "./internal/cli/...", "./internal/sink/kinds"},
		why:  "main only exits; what a command does is in its verb, where tests reach it",
	},
}

// pkg is a package as reported by go list, without its tests.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string // all packages that it links
}

func TestArrows(t *testing.T) {
	pkgs := list(t)
	for _, v := range slices.Concat(violations(rows, pkgs), siblings(pkgs)) {
		t.Error(v)
	}
}

// TestArrowsFindViolations shows that each check can fail.
func TestArrowsFindViolations(t *testing.T) {
	table := []row{{who: "./lib/...", but: []string{"./lib/free"}, only: []string{"std", "x.org/ok/..."}, never: []string{"x.org/ok/bad"}, why: "w"}}
	for _, tc := range []struct {
		why  string
		pkg  pkg
		want string // empty: no violation
	}{
		{"the standard library, itself and permitted packages", pkg{"./lib/a", []string{"net/http", "./lib/b", "x.org/ok", "x.org/ok/a"}, nil}, ""},
		{"a path with the same prefix", pkg{"./lib", []string{"x.org/okay"}, nil}, "may not import x.org/okay"},
		{"another package", pkg{"./lib", []string{"./tool"}, nil}, "may not import"},
		{"forbidden indirectly", pkg{"./lib", []string{"x.org/ok/a"}, []string{"x.org/ok/a", "x.org/ok/bad"}}, "may not link x.org/ok/bad"},
		{"a package with its own row", pkg{"./lib/free", []string{"x.org/else"}, nil}, "binds no package"},
		{"a row without packages says nothing", pkg{"./tool", nil, nil}, "binds no package"},
	} {
		got := violations(table, []pkg{absolute(tc.pkg)})
		expect(t, tc.why, got, tc.want)
	}
	for _, tc := range []struct {
		why  string
		pkg  pkg
		want string
	}{
		{"the root command imports its verbs", pkg{"./internal/cli", []string{"./internal/cli/watch"}, nil}, ""},
		{"a verb has packages below it", pkg{"./internal/cli/watch", []string{"./internal/cli/watch/help"}, nil}, ""},
		{"a verb imports a verb", pkg{"./internal/cli/log", []string{"./internal/cli/watch"}, nil}, "verbs"},
		{"a verb imports a shared package", pkg{"./internal/cli/log", []string{"./internal/cli/terminal"}, nil}, ""},
		{"a shared package imports a verb", pkg{"./internal/cli/terminal", []string{"./internal/cli/watch"}, nil}, "verbs"},
		{"a verb with the same prefix", pkg{"./internal/cli/log", []string{"./internal/cli/login"}, nil}, "verbs"},
	} {
		expect(t, tc.why, siblings([]pkg{absolute(tc.pkg)}), tc.want)
	}
}

// violations returns the violations of the rows by the packages.
func violations(rows []row, pkgs []pkg) []string {
	var out []string
	for _, r := range rows {
		bound := 0
		for _, p := range pkgs {
			if !match(r.who, p.ImportPath) || matchAny(r.but, p.ImportPath) {
				continue
			}
			bound++
			for _, imp := range p.Imports {
				if r.only != nil && !match(r.who, imp) && !matchAny(r.only, imp) {
					out = append(out, fmt.Sprintf("%s may not import %s: %s", p.ImportPath, imp, r.why))
				}
			}
			for _, dep := range p.Deps {
				if matchAny(r.never, dep) && !matchAny(r.never, p.ImportPath) {
					out = append(out, fmt.Sprintf("%s may not link %s: %s", p.ImportPath, dep, r.why))
				}
			}
		}
		if bound == 0 {
			out = append(out, fmt.Sprintf("the row for %s binds no package: delete or correct it", r.who))
		}
	}
	return out
}

// shared are the packages of internal/cli that are not verbs.
var shared = []string{"complete", "kube", "past", "recent", "report", "setup", "terminal"}

// siblings returns the verbs that import each other. Each verb must be readable alone.
func siblings(pkgs []pkg) []string {
	verb := func(importPath string) string {
		rest, ok := strings.CutPrefix(importPath, module+"/internal/cli/")
		if !ok {
			return ""
		}
		first, _, _ := strings.Cut(rest, "/")
		return first
	}
	var out []string
	for _, p := range pkgs {
		for _, imp := range p.Imports {
			from, to := verb(p.ImportPath), verb(imp)
			if from != "" && to != "" && from != to && !slices.Contains(shared, to) {
				out = append(out, fmt.Sprintf("%s imports %s: verbs never import each other; what they share belongs below them", p.ImportPath, imp))
			}
		}
	}
	return out
}

func matchAny(patterns []string, importPath string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, importPath) })
}

func match(pattern, importPath string) bool {
	if pattern == "std" {
		first, _, _ := strings.Cut(importPath, "/")
		return !strings.Contains(first, ".")
	}
	pattern = rooted(pattern)
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return importPath == base || strings.HasPrefix(importPath, base+"/")
	}
	return importPath == pattern
}

func rooted(p string) string {
	if strings.HasPrefix(p, "./") {
		return path.Join(module, p)
	}
	return p
}

func absolute(p pkg) pkg {
	p.ImportPath = rooted(p.ImportPath)
	p.Imports = slices.Clone(p.Imports)
	for i := range p.Imports {
		p.Imports[i] = rooted(p.Imports[i])
	}
	return p
}

// list returns this module's packages; nested modules are not included. Compile errors are left to the
// compiler.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		if err != nil {
			t.Fatalf("read go list's output: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// expect checks that there is no problem, or that the first one contains want.
func expect(t *testing.T, why string, problems []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(problems) != 0:
		t.Errorf("%s: %q, want nothing", why, problems)
	case want != "" && (len(problems) == 0 || !strings.Contains(problems[0], want)):
		t.Errorf("%s: %q, want one that says %q", why, problems, want)
	}
}
