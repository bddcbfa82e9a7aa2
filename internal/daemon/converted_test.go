package daemon

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
)

// serve makes the server serve ConfigMaps in another form: with data.a0, which no manager wrote.
func (r *rig) serve(value string) {
	r.server.ChangeForm(configMaps, func(o map[string]any) { o["data"].(map[string]any)["a0"] = value })
}

// recorded returns a journal's changes, oldest first.
func recorded(t *testing.T, path string, q journal.Query) (all []string) {
	t.Helper()
	reader, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	q.OldestFirst = true
	for e, err := range reader.Rows(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Op == event.Absent {
			continue
		}
		all = append(all, fmt.Sprint(e.Op, " ", e.Name, " by ", e.Manager))
	}
	return all
}

// TestConverted: the server serves objects in another form, while the daemon runs and while it does not. The
// journal has the new states, and one quiet change without a writer for each object. Nothing is delivered.
func TestConverted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		path := filepath.Join(dir, "journal.db")
		r.put("a", "1")
		r.put("b", "1")
		hook := &failing{}
		o := Options{Sinks: []deliver.Options{{Name: "hook", Sink: hook}}}
		d := r.daemon(dir, o)
		d.pass(time.Minute)
		r.serve("red")
		d.pass(5 * time.Minute)
		want := []string{"converted a by ?", "converted b by ?"}
		if d := cmp.Diff(want, recorded(t, path, journal.Query{Quiet: true})); d != "" {
			t.Errorf("while it runs (-want +got):\n%s", d)
		}
		counted := []control.Audits{{Resource: "configmaps", Contents: true, Passed: 1, Reread: 2}}
		if d := cmp.Diff(counted, d.status().Audits); d != "" {
			t.Errorf("audits (-want +got):\n%s", d)
		}
		for _, form := range []string{"blue", "red"} { // a form that comes back is another conversion
			r.serve(form)
			d.pass(15 * time.Minute)
			want = append(want, "converted a by ?", "converted b by ?")
		}
		if d := cmp.Diff(want, recorded(t, path, journal.Query{Quiet: true})); d != "" {
			t.Errorf("to and fro (-want +got):\n%s", d)
		}
		d.stop()
		r.serve("blue")
		d = r.daemon(dir, o)
		d.pass(5 * time.Minute)
		if d := cmp.Diff(append(slices.Clone(want), want[:2]...), recorded(t, path, journal.Query{Quiet: true})); d != "" {
			t.Errorf("while it did not (-want +got):\n%s", d)
		}
		if listed := recorded(t, path, journal.Query{}); listed != nil {
			t.Errorf("not quiet: %q", listed)
		}
		d.stop()
		d = r.daemon(dir, o)
		d.pass(5 * time.Minute)
		d.stop()
		if got := recorded(t, path, journal.Query{Quiet: true}); len(got) != len(want)+2 {
			t.Errorf("nothing happened, and the journal has %q", got)
		}
		if len(hook.lines) > 0 {
			t.Errorf("delivered: %q", hook.lines)
		}
		for _, o := range states(t, path, "configmaps") {
			if !bytes.Contains(o.JSON, []byte(`"a0":"blue"`)) || o.Sum == 0 {
				t.Errorf("%s is kept as %s, with sum %x", o.Name, o.JSON, o.Sum)
			}
		}
	})
}

// states returns the last states of a kind; the journal must not be open.
func states(t *testing.T, path, resource string) (all []journal.Object) {
	t.Helper()
	j, err := journal.Open(t.Context(), path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for o, err := range j.Objects(t.Context(), journal.Stream{GroupResource: resource}) {
		if err != nil {
			t.Fatal(err)
		}
		o.JSON = bytes.Clone(o.JSON)
		all = append(all, o)
	}
	if len(all) == 0 {
		t.Error("the journal has no states")
	}
	return all
}

// TestSecretSum: computing the stored sum of a Secret requires the key, so values cannot be tried against it.
func TestSecretSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
		r.server.Serve(secrets, "Secret")
		r.server.Put(secrets, "shop", "a", map[string]any{"data": map[string]any{"k": "czNjcmV0"}})
		d := r.daemon(dir, Options{Scopes: []capture.Scope{{Types: []string{"secrets"}}}})
		d.pass(time.Minute)
		d.stop()
		sum := states(t, filepath.Join(dir, "journal.db"), "secrets")[0].Sum

		content := []byte(r.served("/api/v1/namespaces/shop/secrets/a"))
		if plain := xxhash.Sum64(content); sum == 0 || sum == plain {
			t.Errorf("sum %x; the plain one is %x", sum, plain)
		}
		key, err := ReadKey(filepath.Join(dir, "key"))
		if err != nil {
			t.Fatal(err)
		}
		redactor, err := redact.New(key, nil)
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, redactor.SumKey())
		mac.Write(content)
		if want := binary.BigEndian.Uint64(mac.Sum(nil)); sum != want {
			t.Errorf("sum %x; with the key it is %x, of %s", sum, want, content)
		}
	})
}

// served returns an object's JSON, without its type.
func (r *rig) served(path string) string {
	r.Helper()
	client, err := rest.HTTPClientFor(r.server.Config())
	if err != nil {
		r.Fatal(err)
	}
	resp, err := client.Get("http://server" + path)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.Fatalf("%s: %s, %v", path, body, err)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(string(body)), `{"kind":"Secret","apiVersion":"v1",`)
	if !ok {
		r.Fatalf("the test reads another form: %s", body)
	}
	return rest
}
