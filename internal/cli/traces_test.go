package cli

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTracesRefused: tattler run and tattler config check refuse the same mistakes under traces, with the place and the key,
// and show no credential.
func TestTracesRefused(t *testing.T) {
	home(t)
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", kubeconfig(t, cluster(t)))
	t.Setenv("TRACES_TOKEN", "hunter2-from-env")
	file, empty, pemless := filepath.Join(dir, "t.yaml"), filepath.Join(dir, "empty"), filepath.Join(dir, "pemless")
	for name, text := range map[string]string{empty: "", pemless: "hunter2"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ traces, want string }{
		{"[]", "traces: want keys and values"},
		{"{}", "traces.endpoint: missing"},
		{"{endpoint: }", "traces.endpoint: no value"},
		{"{endpoint: ''}", "traces.endpoint: missing"},
		{"{endpoint: 'hunter2:4318'}", "traces.endpoint: must begin with https:// or http:// and a host"},
		{"{endpoint: 'https://me:hunter2@:4318'}", "traces.endpoint: must begin with"},
		{"{endpoint: 'https://me:hunter2@h:4318:4318'}", "traces.endpoint: not a URL"},
		{"{endpoint: 'https://me:hunter2@h:65536'}", "traces.endpoint: the port must be a number from 1 to 65535"},
		{"{endpoint: 'https://h/#hunter2'}", "traces.endpoint: must not have a query or a fragment"},
		{"{endpoint: 'http://me:hunter2@collector'}", "traces.endpoint: the password would be sent to collector in clear text"},
		{"{endpoint: 'http://collector', headers: {x-key: '${env:TRACES_TOKEN}'}}", "would be sent to collector in clear text"},
		{"{endpoint: 'https://h', headers: {x-key: '${env:TRACES_MISSING}'}}", "traces.headers.x-key: the environment variable TRACES_MISSING is not set"},
		{"{endpoint: 'https://h', headers: {x-key: '${file:" + empty + "}'}}", "is empty"},
		{"{endpoint: 'https://h', headers: {x-key: \"hunter2\\n\"}}", "traces.headers: the value of x-key contains a character"},
		{"{endpoint: 'https://h', headers: {'x key': hunter2}}", `traces.headers: "x key" is not a header name`},
		{"{endpoint: 'https://h', headers: {x-key: hunter2, X-Key: hunter2}}", "is set twice"},
		{"{endpoint: 'https://h', headers: {Content-Encoding: hunter2}}", "traces.headers: Content-Encoding cannot be set"},
		{"{endpoint: 'https://h', headers: {x-key: }}", "traces.headers.x-key: no value"},
		{"{endpoint: 'https://h', header: {x-key: hunter2}}", "traces.header: unknown key; did you mean headers?"},
		{"{endpoint: 'https://h', sample: 1.01}", "traces.sample: want a number from 0 to 1"},
		{"{endpoint: 'https://h', timeout: -1s}", "traces.timeout: "},
		{"{endpoint: 'https://h', tls: {ca: " + filepath.Join(dir, "none") + "}}", "tls: ca: open "},
		{"{endpoint: 'https://h', tls: {ca: " + pemless + "}}", "tls: ca: "},
		{"{endpoint: 'https://h', tls: {cert: a}}", "traces.tls: cert and key belong together"},
		{"{endpoint: 'https://h', tls: {insecure: true, serverName: a}}", "traces.tls: insecure trusts any certificate"},
		{"{endpoint: 'https://h', tls: {certificate: a}}", "traces.tls.certificate: unknown key"},
	} {
		text := fmt.Sprintf("apiVersion: tattler.dev/v1alpha1\nkind: Config\njournal: {path: %q}\nwatch:\n- resources: {include: [configmaps]}\ntraces: %s\n", filepath.Join(dir, "j.db"), tc.traces)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"config", "check", "-c", file}, {"run", "-c", file}} {
			code, out, stderr := tattler(t.Context(), append([]string{"tattler"}, args...)...)
			if code == exitDone || !strings.Contains(stderr, tc.want) || !strings.Contains(stderr, file+":6:") {
				t.Errorf("%s with %s: exit code %d, %s, want %s", args[0], tc.traces, code, stderr, tc.want)
			}
			if strings.Contains(out+stderr, "hunter2") {
				t.Errorf("%s with %s shows a credential: %s%s", args[0], tc.traces, out, stderr)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "j.db")); err == nil {
		t.Error("a journal was made")
	}
}

// TestTracesTLS: a daemon exports to a receiver with a private certificate. Neither its log nor any command shows the
// credentials, although the receiver repeats them.
func TestTracesTLS(t *testing.T) {
	const password, token = "hunter2-in-the-url", "hunter2-in-a-header"
	var taken, refused, wrong atomic.Int64
	var takes atomic.Bool
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, ok := r.BasicAuth(); !ok || user != "me" || pass != password || r.Header.Get("X-Key") != token || r.URL.Path != "/v1/traces" {
			wrong.Add(1)
		}
		if !takes.Load() {
			refused.Add(1)
			http.Error(w, fmt.Sprint("who is ", r.Header, " ", password), http.StatusUnauthorized)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			taken.Add(1)
		}
	}))
	defer receiver.Close()
	dir := t.TempDir()
	ca, secret := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: receiver.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRACES_PASSWORD", password)
	endpoint := strings.Replace(receiver.URL, "https://", "https://me:${env:TRACES_PASSWORD}@", 1)
	d := startDaemon(t, fmt.Sprintf("traces: {endpoint: %q, headers: {x-key: \"${file:%s}\"}, tls: {ca: %q}}\n", endpoint, secret, ca))
	shows := func(want string, args ...string) {
		t.Helper()
		eventually(t, want, func() error {
			_, out, stderr := tattler(t.Context(), append([]string{"tattler"}, args...)...)
			if strings.Contains(out+stderr, "hunter2") {
				t.Errorf("%q shows a credential: %s%s", args, out, stderr)
			}
			if !strings.Contains(out, want) {
				return fmt.Errorf("%q: %s%s, want %q", args, out, stderr, want)
			}
			return nil
		})
	}
	shows("401 Unauthorized", "status")
	takes.Store(true) // at once: spans that are refused for a minute are dropped
	shows("1 span exported, 0 dropped", "status")
	shows(`"to": "`+receiver.URL+`"`, "status", "-o", "json")
	shows("traces: "+receiver.URL+" can be reached", "doctor", "-c", d.config)
	takes.Store(false)
	shows("traces: "+receiver.URL+" cannot be reached", "doctor", "-c", d.config)
	shows("Traces: 100% of changes, to "+receiver.URL, "config", "check", "-c", d.config)
	takes.Store(true)
	d.stop()
	if taken.Load() == 0 || refused.Load() == 0 || wrong.Load() > 0 {
		t.Errorf("%d requests were taken, %d refused; %d lack the path or the credentials", taken.Load(), refused.Load(), wrong.Load())
	}
	if !strings.Contains(d.log, "trying again") || strings.Contains(d.log, "hunter2") {
		t.Errorf("the log lacks a warning, or shows a credential:\n%s", d.log)
	}
}
