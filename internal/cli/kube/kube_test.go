package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// write makes a kubeconfig and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// alone isolates a test from the machine's kubeconfig and from a pod's service account.
func alone(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, v := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(v, "")
	}
}

const two = `apiVersion: v1
kind: Config
current-context: prod
contexts:
- {name: prod, context: {cluster: c, user: u, namespace: shop}}
- {name: test, context: {cluster: d}}
clusters:
- {name: c, cluster: {server: "https://prod.example:6443"}}
- {name: d, cluster: {server: "https://test.example:6443"}}
users: [{name: u, user: {token: t}}]
`

func TestLoad(t *testing.T) {
	alone(t)
	file := write(t, two)
	for _, tt := range []struct {
		why                   string
		flags                 Flags
		name, host, namespace string
	}{
		{"the current context, with its namespace", Flags{Kubeconfig: file}, "prod", "https://prod.example:6443", "shop"},
		{"another context, without a namespace and a user", Flags{Kubeconfig: file, Context: "test"}, "test", "https://test.example:6443", "default"},
	} {
		c, err := tt.flags.Load()
		if err != nil {
			t.Errorf("%s: %v", tt.why, err)
			continue
		}
		if c.Name != tt.name || c.Config.Host != tt.host || c.Namespace != tt.namespace {
			t.Errorf("%s: %s, %s, %s", tt.why, c.Name, c.Config.Host, c.Namespace)
		}
		if c.Config.UserAgent != "tattler/"+buildinfo.Version() {
			t.Errorf("%s: user agent %q", tt.why, c.Config.UserAgent)
		}
	}
	c, err := (&Flags{Kubeconfig: file, As: "jane", AsGroups: []string{"a", "b"}}).Load()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Config.Impersonate; got.UserName != "jane" || strings.Join(got.Groups, " ") != "a b" {
		t.Errorf("impersonates %+v", got)
	}
}

// TestLoadMerges: KUBECONFIG is a list; for each setting, the first file that has it wins.
func TestLoadMerges(t *testing.T) {
	alone(t)
	other := write(t, "apiVersion: v1\nkind: Config\ncurrent-context: test\n")
	t.Setenv("KUBECONFIG", strings.Join([]string{"/does/not/exist", other, write(t, two)}, string(os.PathListSeparator)))
	c, err := (&Flags{}).Load()
	if err != nil || c.Name != "test" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	alone(t)
	config := func(current, context, cluster string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: " + current + "\ncontexts: [{name: a, context: {" + context +
			"}}]\nclusters: [{name: c, cluster: {" + cluster + "}}]\nusers: [{name: u, user: {}}]\n"
	}
	const server = `server: "https://127.0.0.1:1"`
	for _, tt := range []struct {
		why, file, context string
		want               string
	}{
		{"an unknown context", two, "nope", `the kubeconfig has no context "nope": it has prod, test`},
		{"a context, of an empty file", "", "nope", `the kubeconfig has no context "nope": it has no contexts`},
		{"no current context: a file that several tools share", config("", "cluster: c, user: u", server), "",
			"the kubeconfig has no current context: use --context with one of a"},
		{"a context without its cluster", config("a", "cluster: gone, user: u", server), "",
			`context "a" refers to the cluster "gone", which the kubeconfig does not have`},
		{"a context without its user must not become anonymous", config("a", "cluster: c, user: gone", server), "",
			`context "a" refers to the user "gone", which the kubeconfig does not have`},
		{"a certificate file that is gone", config("a", "cluster: c, user: u", server+", certificate-authority: /does/not/exist"), "",
			`context "a" of the kubeconfig: invalid configuration: unable to read certificate-authority /does/not/exist`},
		{"nothing in it", "", "", "no cluster is configured in FILE: set KUBECONFIG or use --kubeconfig FILE"},
		{"another YAML", "hello: world\n", "", "no cluster is configured in FILE: "},
		{"no YAML", "clusters: [\n  a: {\n", "", `read the kubeconfig: error loading config file "FILE": yaml: `},
		{"another kind of object", "apiVersion: v1\nkind: Pod\n", "", `read the kubeconfig: error loading config file "FILE": no kind "Pod"`},
	} {
		t.Run(tt.why, func(t *testing.T) {
			file := write(t, tt.file)
			_, err := (&Flags{Kubeconfig: file, Context: tt.context}).Load()
			if err == nil {
				t.Fatal("accepted")
			}
			if got := strings.ReplaceAll(err.Error(), file, "FILE"); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	for _, tt := range []struct{ env, want string }{
		{"/does/not/exist", "KUBECONFIG names the file /does/not/exist, which does not exist"},
		{"/does/not/exist" + string(filepath.ListSeparator) + "/nor/this", "KUBECONFIG names the files /does/not/exist and /nor/this, which do not exist"},
		{"/does/not/exist" + string(filepath.ListSeparator) + write(t, ""), "no cluster is configured in /does/not/exist"},
	} {
		t.Run(tt.env, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.env)
			if _, err := (&Flags{}).Load(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	for _, tt := range []struct{ why, file, want string }{
		{"a file that was named must exist", "/does/not/exist", "read the kubeconfig: stat /does/not/exist: no such file or directory"},
		{"a directory", t.TempDir(), "is a directory"},
		{"no file at all, and no pod around us", "", "no cluster is configured: set KUBECONFIG"},
	} {
		if _, err := (&Flags{Kubeconfig: tt.file}).Load(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
}
