package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tattler-dev/tattler/devcluster"
)

// rightsCase is a configuration to run as a service account with the rights printed by `tattler rbac`.
type rightsCase struct {
	name, config string
	// before makes the objects that must exist when the rights are printed.
	before []string
	// change is a kubectl command line whose change must be recorded; again is one that runs while the daemon
	// is down.
	change, again []string
	// meanwhile are commands between the start and the change.
	meanwhile [][]string
	// served is the kind that the API server must serve before the change.
	served string
}

const rightsCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"parts.rights.example.com"},
"spec":{"group":"rights.example.com","scope":"Namespaced","names":{"plural":"parts","singular":"part","kind":"Part"},"versions":[{"name":"v1","served":true,
"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

var rightsCases = []rightsCase{
	{
		name: "everything", config: "",
		change: []string{"create", "configmap", "one", "-n", "default", "--from-literal=a=1"},
		again:  []string{"create", "configmap", "two", "-n", "default", "--from-literal=a=1"},
	},
	{
		name: "namespaces", config: `watch:
- resources: {include: [configmaps, deployments.apps]}
  namespaces: {include: [shop, pay]}
`,
		before: []string{"create namespace shop", "create namespace pay"},
		change: []string{"create", "configmap", "one", "-n", "pay", "--from-literal=a=1"},
		again:  []string{"create", "deployment", "two", "-n", "shop", "--image=x", "--replicas=0"},
	},
	{
		name: "customresources", config: `watch:
- resources: {include: ["*.rights.example.com"]}
`,
		meanwhile: [][]string{{"apply", "-f", "CRD"}},
		served:    "parts.rights.example.com",
		change:    []string{"apply", "-f", "PART-one"},
		again:     []string{"apply", "-f", "PART-two"},
	},
}

// TestRights runs the daemon with exactly the rights that `tattler rbac` prints.
func TestRights(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	r := &rights{dir: t.TempDir()}
	r.cluster, r.client = ownCluster(ctx, t)
	r.kubectl(ctx, t, "create", "namespace", "tattler")
	r.write(t, "CRD", rightsCRD)
	for _, name := range []string{"one", "two"} {
		r.write(t, "PART-"+name, fmt.Sprintf(`{"apiVersion":"rights.example.com/v1","kind":"Part","metadata":{"name":%q,"namespace":"default"},"spec":{"a":1}}`, name))
	}
	t.Run("deploy", func(t *testing.T) { r.deploy(ctx, t) }) // before there are custom resources
	for _, tc := range rightsCases {
		t.Run(tc.name, func(t *testing.T) { r.run(ctx, t, tc) })
	}
}

// rights is a cluster whose service accounts run the daemon.
type rights struct {
	cluster *devcluster.Cluster
	client  *kubernetes.Clientset
	dir     string
}

func (r *rights) write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// kubectl runs kubectl as the admin; arguments that name files in r.dir are replaced by their paths.
func (r *rights) kubectl(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	var words []string
	for _, a := range args {
		if file := filepath.Join(r.dir, a); a == strings.ToUpper(a) || strings.HasPrefix(a, "PART-") {
			if _, err := os.Stat(file); err == nil {
				a = file
			}
		}
		words = append(words, a)
	}
	out, err := r.cluster.Kubectl(ctx, words...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// account makes a service account and returns a kubeconfig with its token.
func (r *rights) account(ctx context.Context, t *testing.T, namespace, name string) string {
	t.Helper()
	_, err := r.client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.token(ctx, t, namespace, name)
}

// token returns a kubeconfig with a service account's token, as a pod would get it.
func (r *rights) token(ctx context.Context, t *testing.T, namespace, name string) string {
	t.Helper()
	token, err := r.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: r.cluster.URL(), CertificateAuthority: r.cluster.CAFile()}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	c.Contexts["prod"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "prod"
	file := filepath.Join(r.dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// command is tattler with a kubeconfig, and its files in the test's folder.
func (r *rights) command(ctx context.Context, t *testing.T, kubeconfig string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, tattler(t), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "XDG_CONFIG_HOME="+r.dir, "XDG_STATE_HOME="+r.dir)
	return cmd
}

// tattler runs a verb to its end and returns its output.
func (r *rights) tattler(ctx context.Context, t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	out, err := r.command(ctx, t, kubeconfig, args...).CombinedOutput()
	return string(out), err
}

// daemon starts tattler run as a service account.
func (r *rights) daemon(ctx context.Context, t *testing.T, kubeconfig, config string) *process {
	t.Helper()
	return launched(t, r.command(ctx, t, kubeconfig, "run", "-c", config))
}

// silence matches the log lines about an API server that a busy machine runs late.
var silence = regexp.MustCompile(`(?m)^.*the API server is (?:away|back).*\n`)

// complaint matches log lines that a daemon with all its rights does not write.
var complaint = regexp.MustCompile(`(?i)level=(warn|error)|forbidden|may not`)

func (r *rights) run(ctx context.Context, t *testing.T, tc rightsCase) {
	for _, line := range tc.before {
		r.kubectl(ctx, t, strings.Fields(line)...)
	}
	kubeconfig := r.account(ctx, t, "tattler", tc.name)
	config := r.write(t, tc.name+".yaml", fmt.Sprintf("apiVersion: tattler.dev/v1alpha1\nkind: Config\n%sjournal: {path: %s}\nsinks:\n- name: out\n  log: {format: json}\n",
		tc.config, filepath.Join(r.dir, tc.name, "journal.db")))
	roles, err := r.tattler(ctx, t, r.cluster.Kubeconfig(), "rbac", "-c", config, "--name", tc.name, "--serviceaccount", "tattler:"+tc.name)
	if err != nil {
		t.Fatalf("%v\n%s", err, roles)
	}
	r.kubectl(ctx, t, "apply", "-f", r.write(t, tc.name+"-roles.yaml", roles))
	r.granted(ctx, t, kubeconfig, config)

	d := r.daemon(ctx, t, kubeconfig, config)
	d.wait(t, d.err, "msg=recording")
	for _, args := range tc.meanwhile {
		r.kubectl(ctx, t, args...)
	}
	if tc.served != "" {
		awaitKind(t, r.cluster, tc.served)
	}
	r.kubectl(ctx, t, tc.change...)
	d.wait(t, d.out, `"name":"one"`)
	d.interrupt(t)
	// Changes made while it is down arrive without a gap, by the right to get.
	r.kubectl(ctx, t, tc.again...)
	e := r.daemon(ctx, t, kubeconfig, config)
	e.wait(t, e.out, `"name":"two"`)
	e.interrupt(t)
	for _, p := range []*process{d, e} {
		if bad := complaint.FindString(silence.ReplaceAllString(p.read(t, p.err), "")); bad != "" {
			t.Errorf("it complains (%s):\n%s", bad, p.read(t, p.err))
		}
		if strings.Contains(p.read(t, p.out), `"op":"gap"`) {
			t.Errorf("a gap:\n%s", tail(p.read(t, p.out)))
		}
	}
	r.lacking(ctx, t, tc, kubeconfig, config)
}

// granted waits until the rights take effect in the API server.
func (r *rights) granted(ctx context.Context, t *testing.T, kubeconfig, config string) {
	t.Helper()
	r.checked(ctx, t, kubeconfig, config, "every right", func(out string) bool { return !strings.Contains(out, "warning:") })
}

// checked waits until `tattler config check` prints expected output, and returns it.
func (r *rights) checked(ctx context.Context, t *testing.T, kubeconfig, config, why string, is func(string) bool) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; pause() {
		out, err := r.tattler(ctx, t, kubeconfig, "config", "check", "-c", config)
		if is(out) {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: config check prints, after %v (%v):\n%s", why, patience, err, out)
		}
	}
}

// holder is a role or cluster role.
type holder struct {
	where string
	rules []rbacv1.PolicyRule
	set   func([]rbacv1.PolicyRule) error
}

// holders returns the roles with a name.
func (r *rights) holders(ctx context.Context, t *testing.T, name string) []holder {
	t.Helper()
	whole, err := r.client.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := []holder{{"the cluster", whole.DeepCopy().Rules, func(rules []rbacv1.PolicyRule) (err error) {
		whole.Rules = rules
		whole, err = r.client.RbacV1().ClusterRoles().Update(ctx, whole, metav1.UpdateOptions{})
		return err
	}}}
	list, err := r.client.RbacV1().Roles("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		role := &list.Items[i]
		all = append(all, holder{role.Namespace, role.DeepCopy().Rules, func(rules []rbacv1.PolicyRule) (err error) {
			role.Rules = rules
			role, err = r.client.RbacV1().Roles(role.Namespace).Update(ctx, role, metav1.UpdateOptions{})
			return err
		}})
	}
	return all
}

// lacking removes each rule in turn: config check must report what is missing. If kinds need the rule, the
// daemon must report it, too; this is checked twice.
func (r *rights) lacking(ctx context.Context, t *testing.T, tc rightsCase, kubeconfig, config string) {
	reported := 0
	for _, h := range r.holders(ctx, t, tc.name) {
		for i, rule := range h.rules {
			if err := h.set(slices.Delete(slices.Clone(h.rules), i, i+1)); err != nil {
				t.Fatal(err)
			}
			kind := rule.Resources[0]
			if kind == "*" { // of the group that the test defines
				kind = "parts"
			}
			r.checked(ctx, t, kubeconfig, config, fmt.Sprintf("in %s without %v", h.where, rule), func(out string) bool {
				return strings.Contains(out, "warning: "+kind)
			})
			if reported < 2 && len(rule.ResourceNames) == 0 && len(rule.Verbs) == 3 {
				reported++
				d := r.daemon(ctx, t, kubeconfig, config)
				d.wait(t, d.err, "not allowed to watch ")
				if said := d.read(t, d.err); !regexp.MustCompile(`kinds="?(?:[^"]* )?` + kind).MatchString(said) {
					t.Errorf("%s is not named in %s", kind, said)
				}
				d.interrupt(t)
			}
		}
		if err := h.set(h.rules); err != nil {
			t.Fatal(err)
		}
	}
	if reported == 0 {
		t.Error("no rule was needed to watch anything")
	}
}
