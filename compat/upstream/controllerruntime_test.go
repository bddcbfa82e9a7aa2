package upstream

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/tattler-dev/tattler/devcluster"
)

// controllerRuntime is controller-runtime with a hook that may change the options of every cache.
func controllerRuntime() module {
	const specs = "pkg/cache/cache_test.go"
	m := module{
		path: "sigs.k8s.io/controller-runtime",
		edits: []edit{{
			file: "pkg/cache/cache.go", count: 1,
			old: "func New(cfg *rest.Config, opts Options) (Cache, error) {\n",
			new: "// SubstituteOptions, if set, changes the options of every cache.\n" +
				"var SubstituteOptions func(*rest.Config, Options) (Options, error)\n\n" +
				"func New(cfg *rest.Config, opts Options) (Cache, error) {\n" +
				"\tif SubstituteOptions != nil {\n\t\tvar err error\n" +
				"\t\tif opts, err = SubstituteOptions(cfg, opts); err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t}\n",
		}},
		overlay: "testdata/controllerruntime",
	}
	m.edits = append(m.edits, // a busy machine needs more
		edit{file: specs, count: 4, old: "time.After(5 * time.Second)", new: "time.After(time.Minute)"},
		edit{file: specs, count: 2, old: "WithTimeout(5 * time.Second)", new: "WithTimeout(time.Minute)"},
		edit{file: specs, count: 1, old: "context.WithTimeout(specCtx, 5*time.Second)", new: "context.WithTimeout(specCtx, time.Minute)"},
		edit{file: specs, count: 1, old: "Done(), 1*time.Second)", new: "Done(), time.Minute)"},
	)
	if runtime.GOOS == "linux" { // etcd and the API server must not outlive a suite that is killed
		m.edits = append(m.edits, edit{
			file: "pkg/internal/testing/process/procattr_unix.go", count: 1,
			old: "\t\tSetpgid: true,\n", new: "\t\tSetpgid: true, Pdeathsig: unix.SIGKILL,\n",
		})
	}
	return m
}

// TestControllerRuntime runs the specs of controller-runtime's cache with informers of ours on a real API server. With
// allEnv it also runs them on informers that list and watch through controller-runtime's clients. With handlers that
// are deaf to additions a spec must fail.
func TestControllerRuntime(t *testing.T) {
	t.Parallel()
	binaries, err := devcluster.EnsureBinaries(t.Context(), os.Stderr, "etcd", "kube-apiserver", "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	m := controllerRuntime()
	dir := m.prepare(t)
	program := m.build(t, dir, "pkg/cache")
	specs := func(t *testing.T, env []string, args ...string) (r result, passed int) {
		env = append(env,
			"KUBEBUILDER_ASSETS="+binaries.Dir(),
			"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=5m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=2m") // a busy machine needs more than 20 s
		r = run(t, program, filepath.Join(dir, "pkg/cache"), env, append([]string{"-ginkgo.no-color"}, args...)...)
		found := passedSpecs.FindStringSubmatch(r.output)
		if found == nil {
			t.Fatalf("no specs were run:\n%s", tail(r.output))
		}
		if passed, err = strconv.Atoi(found[1]); err != nil {
			t.Fatal(err)
		}
		return r, passed
	}
	t.Run("fault", func(t *testing.T) {
		r, passed := specs(t, []string{faultEnv + "=deaf"}, "-test.run=^TestSource$", "-ginkgo.fail-fast",
			"-ginkgo.focus=as an Informer with structured objects should be able to get an informer by group/version/kind")
		if !r.failed || passed > 0 || len(r.constructed) == 0 {
			t.Errorf("with handlers that are deaf to additions the spec must fail:\n%s", tail(r.output))
		}
	})
	for _, path := range []string{"raw", "decoded"} {
		if path != "raw" && os.Getenv(allEnv) == "" {
			continue
		}
		t.Run(path, func(t *testing.T) {
			env := []string{"TATTLER_UPSTREAM_PATH=" + path, "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=30s"}
			r, passed := specs(t, env)
			if r.failed {
				t.Fatalf("specs failed:\n%s", tail(r.output))
			}
			t.Logf("%d specs passed; %d constructed informers of ours", passed, len(r.constructed))
			if passed < 276 {
				t.Errorf("%d specs passed, not at least 276", passed)
			}
			if len(r.constructed) < 200 {
				t.Errorf("%d specs constructed informers of ours, not at least 200", len(r.constructed))
			}
		})
	}
}

var passedSpecs = regexp.MustCompile(`(\d+) Passed`)
