package run

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// receiver is a webhook that refuses some changes for good.
type receiver struct {
	mu      sync.Mutex
	refuses bool
	took    []string // bodies of accepted requests
	refused int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.refuses {
		r.refused++
		http.Error(w, "<b>bad</b> \x1b[31mobject", http.StatusBadRequest)
		return
	}
	r.took = append(r.took, string(body))
}

func (r *receiver) set(refuses bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = refuses
}

// count returns how many accepted requests have a text.
func (r *receiver) count(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range r.took {
		if strings.Contains(body, text) {
			n++
		}
	}
	return n
}

// output is what a command prints, read while it is written.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// await waits for a condition.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !f(); {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// daemonWithPage runs a daemon with a webhook, and returns the URL of its page and its log.
func daemonWithPage(t *testing.T, server, hook string) (page string, log *output) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("XDG_STATE_HOME", dir)
	for name, text := range map[string]string{
		"kubeconfig": fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, server),
		"c.yaml": fmt.Sprintf(`apiVersion: tattler.dev/v1alpha1
kind: Config
cluster: {name: test}
journal: {path: %s/journal.db}
watch:
- resources: {include: [configmaps]}
web: {address: "127.0.0.1:0"}
sinks:
- name: hook
  webhook: {url: %q, timeout: 1m}
`, dir, hook),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log = &output{}
	o := &Options{IO: &terminal.IO{Out: io.Discard, Err: log}}
	o.Setup.Program = &kinds.Program{Name: "tattler", Kinds: kinds.Builtin()}
	o.Setup.File, o.Setup.Kube.Kubeconfig = filepath.Join(dir, "c.yaml"), filepath.Join(dir, "kubeconfig")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	address := regexp.MustCompile(`url=(http://127\.0\.0\.1:\d+)/`)
	await(t, "the page", func() bool {
		m := address.FindStringSubmatch(log.String())
		if m != nil {
			page = m[1]
		}
		return m != nil && strings.Contains(log.String(), "msg=recording")
	})
	return page, log
}

// fetch sends a request as the page in a browser does.
func fetch(t *testing.T, r *http.Request) (code int, body string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r) // follows the redirection after an order
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func getPage(t *testing.T, target string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fetch(t, r)
}

func postOrder(t *testing.T, page, site string, form url.Values) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, page+"/status/order", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", site)
	return fetch(t, r)
}

// TestDeadLetterOnThePage runs a daemon whose webhook refuses a change for good. The page shows the dead letter, and an
// order sends it again: it arrives once.
func TestDeadLetterOnThePage(t *testing.T) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	s, hook := informertest.NewServer(), &receiver{refuses: true}
	s.Serve(configMaps, "ConfigMap")
	server, hooked := httptest.NewServer(s), httptest.NewServer(hook)
	t.Cleanup(server.Close)
	t.Cleanup(hooked.Close)
	page, log := daemonWithPage(t, server.URL, hooked.URL)
	s.Put(configMaps, "shop", "refused", map[string]any{"data": map[string]any{"k": "v"}})
	sinkPage, body := page+"/status/sink?name=hook", ""
	await(t, "a dead letter", func() bool {
		_, body = getPage(t, sinkPage)
		return strings.Contains(body, "send again …")
	})
	for _, want := range []string{"created configmaps refused in shop", "&lt;b&gt;bad&lt;/b&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	if strings.Contains(body, "<b>bad") || strings.Contains(body, "\x1b") {
		t.Error("the receiver's answer is not escaped")
	}
	confirm := regexp.MustCompile(`href="(/status/order\?do=send&amp;id=[^"]*)"`).FindStringSubmatch(body)
	if confirm == nil {
		t.Fatalf("no order in\n%s", body)
	}
	hook.set(false)
	_, body = getPage(t, page+html.UnescapeString(confirm[1]))
	form := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	if code, _ := postOrder(t, page, "cross-site", form); code != http.StatusForbidden || hook.count("") > 0 {
		t.Errorf("another site's order: %d", code)
	}
	code, body := postOrder(t, page, "same-origin", form)
	if code != http.StatusOK || !strings.Contains(body, "1 of 1 dead letter accepted") || !strings.Contains(body, "This sink has no dead letters.") {
		t.Errorf("%d\n%s", code, body)
	}
	// The same form again: the letter is gone, and nothing is sent twice.
	if code, body := postOrder(t, page, "same-origin", form); code != http.StatusConflict || !strings.Contains(body, "has no dead letter") {
		t.Errorf("the order repeated: %d\n%s", code, body)
	}
	s.Put(configMaps, "shop", "accepted", map[string]any{"data": map[string]any{"k": "v"}})
	await(t, "a later change", func() bool { return hook.count(`"name":"accepted"`) > 0 })
	if n := hook.count(`"name":"refused"`); n != 1 {
		t.Errorf("the change arrived %d times", n)
	}
	if want := `msg="order carried out" order="replay dead letters" sink=hook by="this machine, on the web page" letters=1 accepted=1`; !strings.Contains(log.String(), want) {
		t.Errorf("no %s in\n%s", want, log)
	}
	if code, body := getPage(t, page+"/api/v1/status"); code != http.StatusOK || !strings.Contains(strings.ReplaceAll(body, " ", ""), `"order":"replaydeadletters","done":1`) {
		t.Errorf("%d %s", code, body)
	}
}
