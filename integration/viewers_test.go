package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	websetup "github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// page is a protected handler that answers what its viewer may see, in front of a real API server.
type page struct {
	t      *testing.T
	client *kubernetes.Clientset
	ns     string // prefix of the test's namespaces
	url    string
	config *rest.Config // of the page's service account
}

const audience = "tattler.example.com"

// with returns the page for a subtest.
func (p *page) with(t *testing.T) *page {
	q := *p
	q.t = t
	return &q
}

// newPage serves the page as a service account with the rights that `tattler rbac` prints.
func newPage(t *testing.T) *page {
	t.Helper()
	p := &page{t: t, client: clientOf(t, cluster), ns: "viewers"}
	r := &rights{cluster: cluster, client: p.client, dir: t.TempDir()}
	for _, ns := range []string{"tattler", "a", "b"} {
		_, err := p.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.ns + "-" + ns}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	pki := filepath.Dir(cluster.CAFile())
	file := r.write(t, "tattler.yaml", fmt.Sprintf("apiVersion: tattler.dev/v1alpha1\nkind: Config\nwatch:\n- resources: {include: [configmaps]}\n"+
		"web: {address: \":8443\", tokens: true, audiences: [%s], clientCA: %s, tls: {cert: %s, key: %s}}\n",
		audience, cluster.CAFile(), filepath.Join(pki, "apiserver.crt"), filepath.Join(pki, "apiserver.key")))
	kubeconfig := r.account(t.Context(), t, p.ns+"-tattler", "page")
	roles, err := r.tattler(t.Context(), t, cluster.Kubeconfig(), "rbac", "-c", file, "--name", "page", "--serviceaccount", p.ns+"-tattler:page")
	if err != nil {
		t.Fatalf("%v\n%s", err, roles)
	}
	r.kubectl(t.Context(), t, "apply", "-f", r.write(t, "roles.yaml", roles))
	r.granted(t.Context(), t, kubeconfig, file)

	c, err := (&config.Loader{}).Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatal(err)
	}
	a, err := websetup.WebAuth(c.Web, p.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.serve(a)
	return p
}

func (p *page) serve(a *auth.Auth) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.url = "https://" + l.Addr().String()
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l, http.HandlerFunc(answerMay)) }()
	p.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
	})
}

// answerMay answers who the viewer is, and y or n for each target RESOURCE@NAMESPACE of the query.
func answerMay(w http.ResponseWriter, r *http.Request) {
	v := auth.From(r.Context())
	var targets []auth.Target
	for _, q := range r.URL.Query()["may"] {
		resource, ns, _ := strings.Cut(q, "@")
		targets = append(targets, auth.Target{Resource: resource, Namespace: ns})
	}
	may, err := v.May(r.Context(), targets)
	if err == nil && r.URL.Query().Has("status") {
		var status bool
		status, err = v.MayDo(r.Context(), auth.SeeStatus)
		may = append(may, status)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	text := v.User + " "
	for _, m := range may {
		text += map[bool]string{true: "y", false: "n"}[m]
	}
	_, _ = io.WriteString(w, text)
}

// get returns the status and text of an answer.
func (p *page) get(c *http.Client, token, query string) string {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/?"+query, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(b)))
}

// browser returns a client that trusts the cluster's CA, with the certificate of a kubeconfig unless it is empty.
func (p *page) browser(kubeconfig string) *http.Client {
	p.t.Helper()
	cfg := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: cluster.CAFile()}}
	if kubeconfig != "" {
		var err error
		if cfg, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			p.t.Fatal(err)
		}
	}
	c, err := rest.TLSConfigFor(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: c}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// eventually waits for an answer that begins with want, and returns how long that took.
func (p *page) eventually(why, want string, get func() string) time.Duration {
	p.t.Helper()
	began, got := time.Now(), ""
	for time.Since(began) < patience {
		if got = get(); strings.HasPrefix(got, want) {
			return time.Since(began)
		}
		pause()
	}
	p.t.Fatalf("%s: %q after %s, want %q", why, got, patience, want)
	return 0
}

func (p *page) account(name string) (user string, uid string) {
	p.t.Helper()
	sa, err := p.client.CoreV1().ServiceAccounts(p.ns+"-a").Create(p.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return "system:serviceaccount:" + p.ns + "-a:" + name, string(sa.UID)
}

func (p *page) token(name string, audiences ...string) string {
	p.t.Helper()
	token, err := p.client.CoreV1().ServiceAccounts(p.ns+"-a").CreateToken(p.t.Context(), name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return token.Status.Token
}

// view lets a user get configmaps in namespace a, and returns the binding's name.
func (p *page) view(name string, to rbacv1.Subject) {
	p.t.Helper()
	ns := p.ns + "-a"
	_, err := p.client.RbacV1().Roles(ns).Create(p.t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	_, err = p.client.RbacV1().RoleBindings(ns).Create(p.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{to},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestViewers: the API server's own tokens, certificates and RBAC decide who sees what on the web page.
func TestViewers(t *testing.T) {
	p := newPage(t)
	plain := p.browser("")
	const seen = "may=configmaps@viewers-a&may=configmaps@viewers-b&may=secrets@viewers-a&may=nodes&may=configmaps&status"
	user, uid := p.account("reader")
	token := p.token("reader", audience)
	get := func() string { return p.get(plain, token, seen) }

	if got := get(); got != "200 "+user+" nnnnnn" {
		t.Errorf("without rights: %s", got)
	}
	p.view("reader", rbacv1.Subject{Kind: "ServiceAccount", Name: "reader", Namespace: p.ns + "-a"})
	// Tests of package auth measure these times, without an API server and its own caches.
	granted := p.eventually("a right in one namespace", "200 "+user+" ynnnnn", get)
	p.mayStatus("reader", rbacv1.Subject{Kind: "ServiceAccount", Name: "reader", Namespace: p.ns + "-a"})
	p.eventually("the role for the status", "200 "+user+" ynnnny", get)
	if err := p.client.RbacV1().RoleBindings(p.ns+"-a").Delete(t.Context(), "reader", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	taken := p.eventually("the right is taken away", "200 "+user+" nnnnny", get)
	t.Logf("a granted right worked after %s, one taken away ended after %s", granted.Round(time.Second/10), taken.Round(time.Second/10))

	t.Run("tokens", func(t *testing.T) { p.with(t).refusesTokens(plain, uid) })
	t.Run("certificates", func(t *testing.T) { p.with(t).takesCertificates(seen) })
	t.Run("cost", func(t *testing.T) { p.with(t).costs(plain) })

	// The deletion of the account revokes its tokens.
	if got := get(); !strings.HasPrefix(got, "200 ") {
		t.Errorf("before the revocation: %s", got)
	}
	if err := p.client.CoreV1().ServiceAccounts(p.ns+"-a").Delete(t.Context(), "reader", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	revoked := p.eventually("a revoked token", "401 ", get)
	t.Logf("a revoked token ended after %s", revoked.Round(time.Second/10)) // 10 s here, 10 s in the API server, and some
}

// mayStatus binds the cluster role that `tattler rbac` prints for viewers of the status.
func (p *page) mayStatus(name string, to rbacv1.Subject) {
	p.t.Helper()
	_, err := p.client.RbacV1().ClusterRoleBindings().Create(p.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{to},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "page-status"},
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) refusesTokens(plain *http.Client, uid string) {
	t := p.t
	good := p.token("reader", audience)
	for why, token := range map[string]string{
		"for the API server":           p.token("reader"),
		"for another audience":         p.token("reader", "vault.example.com"),
		"with another signature":       good[:len(good)-8] + "AAAAAAAA",
		"that is not one":              "x",
		"of an account that never was": p.signed("ghost", uid, time.Hour),
		"of an earlier account":        p.signed("reader", "6d1f0c9e-0000-0000-0000-000000000000", time.Hour),
		"that has expired":             p.signed("reader", uid, -2*time.Minute),
	} {
		if got := p.get(plain, token, ""); !strings.HasPrefix(got, "401 ") {
			t.Errorf("a token %s: %s", why, got)
		}
	}
	if got := p.get(plain, "", ""); !strings.HasPrefix(got, "401 ") {
		t.Errorf("no token: %s", got)
	}
	// The API server accepts tokens for a minute after their end, in case clocks differ.
	short, life := "", 8*time.Second
	for ; ; life *= 2 { // it must not expire before it arrives
		began := time.Now()
		short = p.signed("reader", uid, life-time.Minute)
		got := p.get(plain, short, "")
		if strings.HasPrefix(got, "200 ") {
			break
		}
		if time.Since(began) < life-2*time.Second {
			t.Fatalf("a token with %s left: %s", life, got)
		}
	}
	took := p.eventually("a token expires", "401 ", func() string { return p.get(plain, short, "") })
	t.Logf("a token with %s left was refused after %s", life, took.Round(time.Second/10))
}

// signed makes a token as the API server does, with its key: TokenRequest makes none that expire within 10 minutes.
func (p *page) signed(name, uid string, life time.Duration) string {
	t := p.t
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(cluster.CAFile()), "service-account.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": "https://kubernetes.default.svc", "aud": []string{audience}, "sub": "system:serviceaccount:" + p.ns + "-a:" + name,
		"iat": now.Add(-time.Hour).Unix(), "nbf": now.Add(-time.Hour).Unix(), "exp": now.Add(life).Unix(),
		"kubernetes.io": map[string]any{"namespace": p.ns + "-a", "serviceaccount": map[string]string{"name": name, "uid": uid}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	body := b64([]byte(`{"alg":"ES256"}`)) + "." + b64(claims)
	sum := sha256.Sum256([]byte(body))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return body + "." + b64(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

func (p *page) takesCertificates(seen string) {
	t := p.t
	for _, tc := range []struct {
		user   string
		groups []string
		bind   *rbacv1.Subject
		want   string
	}{
		{"viewers-alice", nil, &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "viewers-alice"}, "ynnnnn"},
		{"viewers-bob", []string{"viewers-ops"}, &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "viewers-ops"}, "ynnnnn"},
		{"viewers-carol", nil, nil, "nnnnnn"},
		{"viewers-root", []string{"system:masters"}, nil, "yyyyyy"},
	} {
		if tc.bind != nil {
			p.view(tc.user, *tc.bind)
		}
		kubeconfig, err := cluster.UserKubeconfig(tc.user, tc.groups...)
		if err != nil {
			t.Fatal(err)
		}
		c := p.browser(kubeconfig)
		p.eventually(tc.user, "200 "+tc.user+" "+tc.want, func() string { return p.get(c, "", seen) })
		if got := p.get(c, "wrong", seen); !strings.HasPrefix(got, "401 ") {
			t.Errorf("%s with a wrong token beside the certificate: %s", tc.user, got)
		}
	}
	// A certificate with the right name, signed by no one whom the page trusts.
	stranger := p.browser("")
	stranger.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{selfSigned(t, "viewers-root", "system:masters")}
	if got := p.get(stranger, "", seen); !strings.HasPrefix(got, "401 ") {
		t.Errorf("a certificate of another CA: %s", got)
	}
}

// costs measures the reviews of a large timeline: 8 kinds in 50 namespaces, of which the viewer may see none.
func (p *page) costs(plain *http.Client) {
	t := p.t
	var query []string
	for k := range 8 {
		for n := range 50 {
			query = append(query, fmt.Sprintf("may=kind%d@ns%d", k, n))
		}
	}
	p.account("slow")
	token, began := p.token("slow", audience), time.Now()
	if got := p.get(plain, token, strings.Join(query, "&")); !strings.HasSuffix(got, " "+strings.Repeat("n", 400)) {
		t.Fatal(got)
	}
	first := time.Since(began)
	began = time.Now()
	_ = p.get(plain, token, strings.Join(query, "&"))
	t.Logf("408 reviews took %s; remembered ones %s", first.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}

// selfSigned returns a client certificate of its own CA.
func selfSigned(t *testing.T, name string, groups ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
