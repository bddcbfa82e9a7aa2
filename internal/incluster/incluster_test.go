package incluster_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/incluster"
	"github.com/tattler-dev/tattler/internal/incluster/inclustertest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/web/client/clienttest"
)

// TestMain finds goroutines that were left behind. That of spdystream waits a second for a reader of the error of a
// connection that both sides close; a connection that stays open has other goroutines, which are found.
func TestMain(m *testing.M) {
	leaktest.Main(m, goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}

// start starts a cluster whose daemon serves a journal with one change.
func start(t *testing.T) *inclustertest.Cluster {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	k := journal.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true}
	_, err = j.Append(t.Context(), []journal.Batch{{Stream: journal.Stream{GroupResource: "secrets"}, Head: journal.Head{Version: "1", At: at}, Rows: []journal.Row{
		{After: []byte(`{"metadata":{"name":"key"}}`), Meta: journal.Meta{Op: event.Created, Kind: k, Namespace: "shop", Name: "key", UID: "u", Time: at, At: at, ResourceVersion: "1"}},
	}}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := clienttest.Handler(access.New(r), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := inclustertest.Start(t.TempDir(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func config(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// denied is a viewer who may see nothing.
type denied struct{}

func (denied) May(_ context.Context, targets []access.Target) ([]bool, error) {
	return make([]bool, len(targets)), nil
}

func (denied) Created(ctx context.Context, namespaces []access.Namespace) ([]time.Time, error) {
	return access.Everything{}.Created(ctx, namespaces)
}

const named = inclustertest.Namespace + "/" + inclustertest.Service

// TestIdentities: the daemon learns who the viewer is, and gets no more than the viewer agreed to.
func TestIdentities(t *testing.T) {
	for _, tc := range []struct {
		why     string
		token   bool // the kubeconfig has a token, else a client certificate
		o       incluster.Options
		seen    []string
		changes int
	}{
		{"a client certificate", false, incluster.Options{}, []string{"cert alice"}, 1},
		{"the Service is named", false, incluster.Options{Service: named}, []string{"cert alice"}, 1},
		{"a ServiceAccount instead of the certificate", false, incluster.Options{Service: named, Account: "shop/viewer"}, []string{"token " + inclustertest.AccountToken}, 0},
		{"a ServiceAccount, requested with a token that is not sent", true, incluster.Options{Service: named, Account: "shop/viewer"}, []string{"token " + inclustertest.AccountToken}, 0},
		{"the viewer's own token, if the viewer says so", true, incluster.Options{Service: named, SendToken: true}, []string{"token " + inclustertest.UserToken}, 0},
	} {
		t.Run(tc.why, func(t *testing.T) {
			c := start(t)
			c.Viewer = denied{}
			tc.o.Config = config(t, c.Certificate)
			if tc.token {
				tc.o.Config = config(t, c.Token)
			}
			j, err := incluster.Open(t.Context(), tc.o)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range j.Rows(t.Context(), journal.Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != tc.changes || j.URL() != "https://tattler.monitoring.svc" {
				t.Errorf("%d changes of %s, want %d", n, j.URL(), tc.changes)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			if seen := c.Seen(); !slices.Equal(seen, tc.seen) {
				t.Errorf("the daemon was shown %q, want %q", seen, tc.seen)
			}
		})
	}
}

// TestRefused: nothing is sent to a daemon that cannot be verified, and errors say what to do.
func TestRefused(t *testing.T) {
	otherCA := filepath.Join(t.TempDir(), "ca.crt")
	for _, tc := range []struct {
		why   string
		token bool
		edit  func(c *inclustertest.Cluster, o *incluster.Options)
		want  string
	}{
		{"a token is not sent by default", true, func(*inclustertest.Cluster, *incluster.Options) {}, "say --daemon-account NAMESPACE/NAME"},
		{"a token to any labelled Service", true, func(_ *inclustertest.Cluster, o *incluster.Options) { o.SendToken = true }, "name the daemon that receives a token"},
		{"an account's token to any labelled Service", true, func(_ *inclustertest.Cluster, o *incluster.Options) { o.Account = "shop/viewer" }, "name the daemon that receives a token"},
		{"two identities", true, func(_ *inclustertest.Cluster, o *incluster.Options) { o.Account, o.SendToken = "a/b", true }, "exclude each other"},
		{"impersonation", false, func(_ *inclustertest.Cluster, o *incluster.Options) { o.Config.Impersonate.UserName = "eve" }, "--as does not reach a daemon"},
		{"several daemons", false, func(c *inclustertest.Cluster, _ *incluster.Options) { c.Services = []string{"evil/tattler"} }, "say --in-cluster=evil/tattler, or --in-cluster=monitoring/tattler"},
		{"no such Service", false, func(_ *inclustertest.Cluster, o *incluster.Options) { o.Service = "a/b" }, "find the daemon: the API server answered: "},
		{"not a Service", false, func(_ *inclustertest.Cluster, o *incluster.Options) { o.Service = "b" }, `--in-cluster: "b" is not NAMESPACE/NAME`},
		{"another CA", true, func(_ *inclustertest.Cluster, o *incluster.Options) {
			o.CA, o.Service, o.SendToken = otherCA, named, true
		}, "did not sign the daemon's certificate"},
		{"no CA", false, func(_ *inclustertest.Cluster, o *incluster.Options) { o.CA = os.DevNull }, "has no certificate in PEM"},
		{"the pod does not listen", false, func(c *inclustertest.Cluster, _ *incluster.Options) { c.Broken = true }, "nothing listens on port 8443"},
		{"no such account", false, func(_ *inclustertest.Cluster, o *incluster.Options) { o.Account, o.Service = "shop/other", named }, "request a token of ServiceAccount shop/other"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			c := start(t)
			kubeconfig := c.Certificate
			if tc.token {
				kubeconfig = c.Token
			}
			o := incluster.Options{Config: config(t, kubeconfig)}
			if err := os.WriteFile(otherCA, o.Config.CAData, 0o600); err != nil { // the cluster's, which did not sign it
				t.Fatal(err)
			}
			tc.edit(c, &o)
			j, err := incluster.Open(t.Context(), o)
			if err == nil {
				t.Fatal(errors.Join(errors.New("it was opened"), j.Close()))
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v; want %s", err, tc.want)
			}
			if seen := c.Seen(); len(seen) > 0 {
				t.Errorf("the daemon was shown %q", seen)
			}
		})
	}
}

// TestDial: another dialer can take the place of the port-forward.
func TestDial(t *testing.T) {
	c := start(t)
	failed := errors.New("no route")
	_, err := incluster.Open(t.Context(), incluster.Options{Config: config(t, c.Certificate), Dial: func(_ context.Context, namespace, pod string, port int) (net.Conn, error) {
		if namespace != inclustertest.Namespace || pod != inclustertest.Pod || port != 8443 {
			t.Errorf("connects to %s/%s, port %d", namespace, pod, port)
		}
		return nil, failed
	}})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
}
