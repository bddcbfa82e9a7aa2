package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/goldentest"
	"github.com/tattler-dev/tattler/internal/sink"
)

// resource names an object of the tests' cluster.
func resource(kind, namespace, name string, owner *event.Owner) event.Resource {
	return event.Resource{
		Group: "apps", Version: "v1", Resource: strings.ToLower(kind) + "s", Kind: kind, Namespace: namespace, Name: name,
		UID: "uid-" + kind + name, ResourceVersion: "7", Owner: owner,
	}
}

// changes are events, a second apart.
func changes(data ...event.Data) []*event.Event {
	var all []*event.Event
	for i, d := range data {
		at := time.Date(2026, 11, 21, 10, 0, i, 0, time.UTC)
		d.Observed.At = at
		d.Resource.ResourceVersion = fmt.Sprint(1000 + i)
		e := event.New("prod", at, d)
		all = append(all, &e)
	}
	return all
}

func image(from, to string) []event.Change {
	return []event.Change{{Path: "spec.template.spec.containers[name=app].image", Op: "replace", From: from, To: to, Manager: "kubectl-set"}}
}

func updated(r event.Resource, c ...event.Change) event.Data {
	return event.Data{Op: event.Updated, Resource: r, Changes: c}
}

// scenarios are the changes to report.
func scenarios() map[string][]*event.Event {
	web := resource("Deployment", "shop", "web", nil)
	set := func(name string) event.Resource {
		return resource("ReplicaSet", "shop", name, &event.Owner{Kind: "Deployment", Name: "web", UID: web.UID})
	}
	pod := func(name, of string) event.Resource {
		return resource("Pod", "shop", name, &event.Owner{Kind: "ReplicaSet", Name: of, UID: "uid-ReplicaSet" + of})
	}
	status := event.Change{Path: "status.replicas", Op: "replace", From: int64(1), To: int64(2), Manager: "kube-controller-manager", Subresource: "status"}
	evil := "@everyone <!channel> @here **x** `y` [z](http://evil) <b>&amp;</b>\nnext"
	burst := []event.Data{
		{Op: event.Gap, Resource: event.Resource{Group: "", Version: "v1", Resource: "pods", Kind: "Pod"}, Gap: &event.GapInfo{From: "1", To: "2", Reason: "the server no longer has the versions between"}},
		{Op: event.Deleted, Resource: resource("Deployment", "shop", "cart", nil)},
	}
	for i := range 70 {
		burst = append(burst, updated(resource("ConfigMap", "shop", fmt.Sprint("settings-", i), nil), event.Change{Path: "data.level", Op: "replace", From: "info", To: "debug", Manager: "helm"}))
	}
	burst = append(burst, event.Data{Op: event.Deleted, Resource: resource("Service", "shop", "cart", nil)})
	return map[string][]*event.Event{
		"1 one field": changes(updated(web,
			event.Change{Path: "spec.replicas", Op: "replace", From: int64(2), To: int64(3), Manager: "kubectl-scale", Subresource: "scale"},
			event.Change{Path: `metadata.annotations["a.b/c"]`, Op: "add", To: "x", Manager: "?"},
			event.Change{Path: "spec.paused", Op: "remove", From: true, Manager: "?"},
			event.Change{Path: "metadata.generation", Op: "replace", From: int64(1), To: int64(2), Quiet: true})),
		"2 a rollout": changes(
			updated(web, image("app:1.4", "app:1.5")...),
			event.Data{Op: event.Created, Resource: pod("web-new-1", "web-new")}, // before its owner is known
			event.Data{Op: event.Created, Resource: set("web-new")},
			updated(web, status),
			event.Data{Op: event.Created, Resource: pod("web-new-2", "web-new")},
			updated(set("web-old"), status),
			event.Data{Op: event.Deleted, Resource: pod("web-old-1", "web-old")},
			updated(web, image("app:1.5", "app:1.6")...)),
		"3 a burst": changes(burst...),
		"4 names and values that mean something elsewhere": changes(
			updated(resource("Deployment", "shop", evil, nil), event.Change{Path: `metadata.labels["` + evil + `"]`, Op: "replace", From: evil, To: map[string]any{"a": evil}, Manager: evil})),
		"5 a deletion": changes(event.Data{Op: event.Deleted, Resource: web}),
	}
}

// recorder keeps requests as text.
type recorder struct {
	t    *testing.T
	body string // the response
	got  bytes.Buffer
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	fmt.Fprintf(&r.got, "%s %s\n", req.Method, req.URL.RequestURI())
	for _, name := range []string{"Content-Type", "User-Agent", "Title", "Priority", "X-Gotify-Key"} {
		if v := req.Header.Get(name); v != "" {
			fmt.Fprintf(&r.got, "%s: %s\n", name, v)
		}
	}
	var v any
	var b bytes.Buffer
	if json.Unmarshal(body, &v) == nil {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			r.t.Error(err)
		}
		body = b.Bytes()
	}
	fmt.Fprintf(&r.got, "\n%s\n", strings.TrimSpace(string(body)))
	_, _ = io.WriteString(w, r.body)
}

// tellAll sends each scenario as one message.
func tellAll(t *testing.T, o Options, got *bytes.Buffer) {
	t.Helper()
	o.Window, o.BaseURL = time.Minute, "https://tattler.example.com/"
	all := scenarios()
	for _, name := range []string{"1 one field", "2 a rollout", "3 a burst", "4 names and values that mean something elsewhere", "5 a deletion"} {
		fmt.Fprintf(got, "=== %s\n", name)
		s := must(New("tattler/test", o))(t)
		for _, e := range all[name] {
			if n, err := s.Send(t.Context(), []sink.Message{{ID: e.ID, Key: e.PartitionKey, Event: e}}); n != 1 || err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !s.Due().IsZero() {
			t.Errorf("%s: something is held after a flush", name)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Compare(t, filepath.Join("testdata", name+".golden"), got)
}

// TestRequests checks each service's requests against its documented limits.
func TestRequests(t *testing.T) {
	for _, tc := range []struct {
		name, path, answer string
		service            Service
	}{
		{"slack", "/services/T0/B0/t0ken", "ok", Slack},
		{"discord", "/api/webhooks/1/t0ken?thread_id=5", "", Discord},
		{"teams", "/workflows/1/triggers/manual/paths/invoke?api-version=1&sig=s1g", "", Teams},
		{"mattermost", "/hooks/t0ken", "ok", Mattermost},
		{"telegram", "/bot1:t0ken/sendMessage?chat_id=-100&message_thread_id=5", `{"ok":true}`, Telegram},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &recorder{t: t, body: tc.answer}
			server := httptest.NewServer(r)
			defer server.Close()
			tellAll(t, Options{URL: server.URL + tc.path, Service: tc.service}, &r.got)
			golden(t, tc.name, r.got.String())
		})
	}
	for name, address := range map[string]string{
		"shoutrrr-ntfy":   "ntfy://%s/topic?scheme=http",
		"shoutrrr-gotify": "gotify://%s/AAAAAAAAAAAAAAA?disabletls=yes",
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{t: t, body: "{}"}
			server := httptest.NewServer(r)
			defer server.Close()
			tellAll(t, Options{URL: fmt.Sprintf(address, strings.TrimPrefix(server.URL, "http://"))}, &r.got)
			server.CloseClientConnections()
			golden(t, name, regexp.MustCompile(`shoutrrr/\S+`).ReplaceAllString(r.got.String(), "shoutrrr/…"))
		})
	}
}
