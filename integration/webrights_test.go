package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// served is the page and the API of a daemon, with two recorded namespaces: a, of which viewers know, and b.
type served struct {
	*page
	daemon *process
	a, b   string
	// until is a time after the changes that were recorded first.
	since, until string
	// id and seq are those of a change in b.
	id, seq string
}

// serveDaemon runs `tattler run` with TLS and authentication.
func serveDaemon(t *testing.T, proxyCA string) *served {
	t.Helper()
	prefix := fmt.Sprintf("webrights-%d", time.Now().UnixNano()%1e9)
	s := &served{page: &page{t: t, client: clientOf(t, cluster), ns: prefix}, a: prefix + "-a", b: prefix + "-b"}
	for _, ns := range []string{s.a, s.b} {
		if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	dir, pki, address := t.TempDir(), filepath.Dir(cluster.CAFile()), freeAddress(t)
	file := filepath.Join(dir, "tattler.yaml")
	text := fmt.Sprintf("apiVersion: tattler.dev/v1alpha1\nkind: Config\nwatch:\n- resources: {include: [configmaps]}\njournal: {path: %s}\n"+
		"web: {address: %q, tokens: true, audiences: [%s], clientCA: %s, tls: {cert: %s, key: %s}, requestHeader: {clientCA: %s, allowedNames: [front]}}\n",
		filepath.Join(dir, "journal.db"), address, audience, cluster.CAFile(), filepath.Join(pki, "apiserver.crt"), filepath.Join(pki, "apiserver.key"), proxyCA)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.url = "https://" + address
	s.since = time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	s.daemon = start(t, cluster, "run", "-c", file)
	s.daemon.wait(t, s.daemon.err, "msg=recording")
	return s
}

// write makes or changes a ConfigMap.
func (s *served) write(ns, name, value string) {
	s.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}, Data: map[string]string{"key": value}}
	_, err := s.client.CoreV1().ConfigMaps(ns).Update(s.t.Context(), cm, metav1.UpdateOptions{})
	if err != nil {
		_, err = s.client.CoreV1().ConfigMaps(ns).Create(s.t.Context(), cm, metav1.CreateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// webClient is the client of a viewer.
type webClient struct {
	*http.Client
	s       *served
	token   string
	headers map[string]string
}

func (c *webClient) request(ctx context.Context, url string) *http.Response {
	c.s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.s.url+url, nil)
	if err != nil {
		c.s.t.Fatal(err)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	resp, err := c.Do(r)
	if err != nil {
		c.s.t.Fatal(err)
	}
	return resp
}

// get returns the status and the body of an answer.
func (c *webClient) get(url string) (int, string) {
	c.s.t.Helper()
	resp := c.request(c.s.t.Context(), url)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// sees waits until an answer has a text.
func (c *webClient) sees(url, text string) {
	c.s.t.Helper()
	var got string
	for end := time.Now().Add(patience); ; pause() {
		if _, got = c.get(url); strings.Contains(got, text) {
			return
		}
		if time.Now().After(end) {
			c.s.t.Fatalf("%s has no %q:\n%s", url, text, tail(got))
		}
	}
}

// everyPath are the ways to ask for a namespace NS with an object NAME, whose change is ID or SEQ. SPAN is a time range.
var everyPath = []string{
	"/?namespace=NS&SPAN", "/?namespace=NS&flat=1&SPAN", "/?namespace=NS&lanes=object&SPAN", "/?name=NAME&SPAN", "/?type=cm/NAME&SPAN", "/?q=value-of-NAME&SPAN",
	"/?namespace=NS&noise=true&op=deleted&SPAN", "/entries?namespace=NS&SPAN", "/histogram?namespace=NS&SPAN", "/histogram?name=NAME&SPAN",
	"/unfold?changes=SEQ", "/changes/ID", "/changes/ID?view=after", "/changes/ID/event.json",
	"/object?type=configmaps&namespace=NS&name=NAME", "/object?type=configmaps&namespace=NS&name=NAME&view=blame",
	"/object?type=configmaps&namespace=NS&name=NAME&view=related", "/object?type=configmaps&namespace=NS&name=NAME&version=ID",
	"/object?type=configmaps&namespace=NSA&name=seen&with=ID",
	"/api/v1/changes?namespace=NS&objects=true", "/api/v1/changes?q=value-of-NAME&SPAN", "/api/v1/changes/ID", "/api/v1/names?prefix=NAME", "/api/v1/names?namespace=NS",
	"/api/v1/objects?namespace=NS", "/api/v1/objects?type=cm&name=NAME", "/api/v1/differences?namespace=NS&SPAN",
	"/api/v1/versions?type=cm&name=NAME&namespace=NS", "/api/v1/blame?type=cm&name=NAME&namespace=NS", "/api/v1/kinds?namespace=NS",
	`/api/v1/raw/rows?query={"namespaces":["NS"]}`, "/api/v1/raw/contents?seq=SEQ", "/api/v1/raw/id/ID", "/api/v1/raw/names?resource=configmaps&namespace=NS",
	"/api/v1/raw/history?seq=SEQ", `/api/v1/raw/states?at=2100-01-01T00:00:00Z&query={"namespaces":["NS"]}`,
}

// anyTime matches times, as pages and the API write them.
var anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d(:|%3A)\d\d(:|%3A)\d\d(\.\d+)?(Z| UTC)?`)

// hides compares the answers about what exists in b with the answers about what does not exist anywhere.
func (s *served) hides(t *testing.T, c *webClient) {
	t.Helper()
	fill := func(url string, ns, name, id, seq string) (int, string) {
		r := strings.NewReplacer("NSA", s.a, "NS", ns, "NAME", name, "ID", id, "SEQ", seq, "SPAN", "since="+s.since+"&until="+s.until, `"`, "%22", "{", "%7B", "}", "%7D")
		code, body := c.get(r.Replace(url))
		body = strings.NewReplacer(ns, "NS", name, "NAME", id, "ID").Replace(body)
		body = anyTime.ReplaceAllString(body, "TIME")                                        // before the number: it may be a part of a time
		return code, regexp.MustCompile(`([=:])`+seq+`\b`).ReplaceAllString(body, "${1}SEQ") // not a part of ?v=9a9d
	}
	answered := 0
	for _, url := range everyPath {
		code, body := fill(url, s.b, "zzhidden", s.id, s.seq)
		code2, body2 := fill(url, s.ns+"-x", "zzabsent", "abcdefghijklmnopqrstuvwxyz", "987654321")
		if code == http.StatusOK {
			answered++
		}
		if code != code2 || body != body2 {
			t.Errorf("%s: %d, but %d for what does not exist:\n%s", url, code, code2, firstDifference(body, body2))
		}
		if code >= http.StatusInternalServerError || strings.Contains(body, "secret-value") {
			t.Errorf("%s: %d\n%s", url, code, tail(body))
		}
	}
	t.Logf("%d of %d paths answered", answered, len(everyPath))
}

// firstDifference returns the first lines that differ.
func firstDifference(a, b string) string {
	one, two := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(one), len(two)) {
		if one[i] != two[i] {
			return fmt.Sprintf("line %d\n%s\n%s", i+1, one[i], two[i])
		}
	}
	return fmt.Sprintf("%d lines, %d lines", len(one), len(two))
}

// TestWebRights runs the daemon with a page that other machines could reach. A viewer of one namespace learns nothing of
// another one, on no path, and a right or a credential that is taken away ends within the documented time.
func TestWebRights(t *testing.T) {
	front := selfSigned(t, "front")
	proxyCA := filepath.Join(t.TempDir(), "proxy.pem")
	if err := os.WriteFile(proxyCA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate[0]}), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveDaemon(t, proxyCA)
	admin := &webClient{Client: s.browser(cluster.Kubeconfig()), s: s}
	plain := s.browser("")

	s.write(s.a, "seen", "value-of-seen")
	s.write(s.b, "zzhidden", "value-of-zzhidden secret-value")
	s.write(s.b, "zzhidden", "value-of-zzhidden secret-value 2")
	s.write(s.b, "gone", "secret-value")
	if err := s.client.CoreV1().ConfigMaps(s.b).Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	admin.sees("/?namespace="+s.b, "existed")
	s.until = time.Now().UTC().Add(time.Second).Format(time.RFC3339)
	s.remember(admin)

	for _, name := range []string{"one", "wide", "nobody"} {
		s.account(name)
	}
	one, wide, nobody := &webClient{Client: plain, s: s, token: s.token("one", audience)}, &webClient{Client: plain, s: s, token: s.token("wide", audience)}, &webClient{Client: plain, s: s, token: s.token("nobody", audience)}
	s.view("one", rbacv1.Subject{Kind: "ServiceAccount", Name: "one", Namespace: s.a})
	s.viewAll("wide")
	one.sees("/?type=cm/seen", "seen</a>")
	wide.sees("/?namespace="+s.b, "zzhidden</a>")

	t.Run("one namespace", func(t *testing.T) {
		s.hides(t, one)
		// Neither the list nor the counts of everything have more than those of the viewer's namespace.
		for _, path := range []string{"/histogram", "/entries"} {
			span := "since=" + s.since + "&until=" + s.until
			_, all := one.get(path + "?" + span)
			_, of := one.get(path + "?namespace=" + s.a + "&" + span)
			plain := strings.NewReplacer("namespace="+s.a+"&amp;", "", "?namespace="+s.a+`"`, `"`)
			if plain.Replace(all) != plain.Replace(of) {
				t.Errorf("%s shows other namespaces:\n%s\n%s", path, tail(all), tail(of))
			}
		}
	})
	t.Run("no rights", func(t *testing.T) {
		s.hides(t, nobody)
		if code, body := nobody.get("/"); code != http.StatusOK || strings.Contains(body, s.b) || strings.Contains(body, `/seen`) {
			t.Errorf("%d\n%s", code, tail(body))
		}
	})
	t.Run("no token", func(t *testing.T) {
		none := &webClient{Client: plain, s: s}
		s.hides(t, none)
		for _, url := range []string{"/", "/live?after=0", "/status", "/static/app.css", "/api/v1/journal"} {
			if code, _ := none.get(url); code != http.StatusUnauthorized {
				t.Errorf("%s: %d", url, code)
			}
		}
	})
	t.Run("the whole cluster", func(t *testing.T) {
		for _, url := range []string{"/changes/" + s.id, "/object?type=configmaps&namespace=" + s.b + "&name=zzhidden", "/api/v1/changes?namespace=" + s.b + "&objects=true"} {
			if code, body := wide.get(url); code != http.StatusOK || !strings.Contains(body, "secret-value") {
				t.Errorf("%s: %d\n%s", url, code, tail(body))
			}
		}
	})
	t.Run("status", func(t *testing.T) {
		for c, want := range map[*webClient]int{one: http.StatusForbidden, wide: http.StatusForbidden, nobody: http.StatusForbidden, admin: http.StatusOK} {
			if code, _ := c.get("/status"); code != want {
				t.Errorf("%d, want %d", code, want)
			}
		}
	})
	t.Run("certificates and headers", func(t *testing.T) {
		user := s.ns + "-alice"
		kubeconfig, err := cluster.UserKubeconfig(user)
		if err != nil {
			t.Fatal(err)
		}
		s.view(user, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: user})
		alice := &webClient{Client: s.browser(kubeconfig), s: s}
		proxied := &webClient{Client: s.browser(""), s: s, headers: map[string]string{"X-Remote-User": user}}
		proxied.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{front}
		for _, c := range []*webClient{alice, proxied} {
			c.sees("/?type=cm/seen", "seen</a>")
			s.hides(t, c)
		}
		forged := &webClient{Client: s.browser(""), s: s, headers: proxied.headers}
		if code, _ := forged.get("/"); code != http.StatusUnauthorized {
			t.Errorf("the header without the proxy's certificate: %d", code)
		}
	})
	t.Run("live", func(t *testing.T) { s.live(t, one) })
	s.daemon.interrupt(t)
}

// remember reads the id and the sequence number of a change in b.
func (s *served) remember(admin *webClient) {
	s.t.Helper()
	_, body := admin.get("/api/v1/changes?type=cm/zzhidden&namespace=" + s.b)
	if m := regexp.MustCompile(`"seq":(\d+)`).FindStringSubmatch(body); m != nil {
		s.seq = m[1]
	}
	if m := regexp.MustCompile(`"id":"([a-z2-7]{26})"`).FindStringSubmatch(body); m != nil {
		s.id = m[1]
	}
	if s.id == "" || s.seq == "" {
		s.t.Fatalf("no change in %s", tail(body))
	}
}

// viewAll lets a service account get ConfigMaps in the whole cluster.
func (s *served) viewAll(name string) {
	s.t.Helper()
	meta := metav1.ObjectMeta{Name: s.ns + "-" + name}
	_, err := s.client.RbacV1().ClusterRoles().Create(s.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{})
	if err == nil {
		_, err = s.client.RbacV1().ClusterRoleBindings().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: s.a}}}, metav1.CreateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// follower collects the server-sent events of a live page.
type follower struct {
	mu    sync.Mutex
	text  strings.Builder
	ended time.Time
}

func (f *follower) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f.mu.Lock()
		f.text.WriteString(lines.Text() + "\n")
		f.mu.Unlock()
	}
	f.mu.Lock()
	f.ended = time.Now()
	f.mu.Unlock()
}

func (f *follower) has(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(f.text.String(), text)
}

func (f *follower) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.ended.IsZero()
}

// live follows a page whose viewer loses first the right, then the credential.
func (s *served) live(t *testing.T, one *webClient) {
	await := func(why string, most time.Duration, is func() bool) time.Duration {
		t.Helper()
		began := time.Now()
		for !is() {
			if time.Since(began) > most {
				t.Fatalf("%s: not within %s", why, most)
			}
			pause()
		}
		return time.Since(began)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := one.request(ctx, "/live?flat=1&after="+s.seq)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	f, done := &follower{}, make(chan struct{})
	go func() { defer close(done); f.read(resp.Body) }()
	s.write(s.b, "hidden-live", "secret-value")
	s.write(s.a, "seen-live", "value")
	await("a visible change", patience, func() bool { return f.has("seen-live") })
	if err := s.client.RbacV1().RoleBindings(s.a).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	began, last := time.Now(), time.Now()
	for n := 0; time.Since(last) < 8*time.Second; n++ { // each name that arrives was shown after the right was taken away
		name := fmt.Sprint("late-", n)
		s.write(s.a, name, "value")
		written := time.Now()
		for time.Since(written) < time.Second {
			if f.has("/</span>" + name + "</a>") {
				last = time.Now()
			}
			pause()
		}
		if time.Since(began) > patience { // it takes 10 s, which tests of package auth measure, and some for the API server's own caches
			t.Fatalf("changes are still shown %s after the right was taken away", patience)
		}
	}
	t.Logf("changes were shown for %s after the right was taken away", last.Sub(began).Round(time.Second/10))
	if f.has("hidden-live") || f.has("secret-value") || f.has(s.b) {
		t.Error("the stream has another namespace")
	}
	if err := s.client.CoreV1().ServiceAccounts(s.a).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// An idle stream verifies its viewer with each ping, every 15 s; 10 s here and 10 s in the API server come before that.
	took := await("the revoked token ends the stream", patience, f.over)
	t.Logf("the stream ended %s after the token was revoked", took.Round(time.Second/10))
	cancel()
	<-done
}
