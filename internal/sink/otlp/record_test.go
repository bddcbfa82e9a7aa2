package otlp

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func message(t *testing.T, d event.Data) sink.Message {
	t.Helper()
	e := event.New("prod", time.Date(2026, 11, 21, 10, 0, 0, 5e8, time.UTC), d)
	body, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return sink.Message{ID: e.ID, Key: e.PartitionKey, Body: body, Event: &e}
}

var deployment = event.Resource{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u1", ResourceVersion: "7"}

func TestRecord(t *testing.T) {
	m := message(t, event.Data{
		Op: event.Updated, Resource: deployment, Observed: event.Observed{At: time.Unix(1, 2)}, Truncated: true, FilterError: "no such key",
		Changes: []event.Change{{Path: "spec.replicas", Op: "replace", From: nil, To: int64(3), Manager: "kubectl"}},
	})
	const want = `{
		"timeUnixNano": "1795255200500000000", "observedTimeUnixNano": "1000000002", "severityNumber": "SEVERITY_NUMBER_INFO", "severityText": "INFO",
		"eventName": "dev.tattler.change.updated.v1",
		"attributes": [
			{"key": "k8s.resource.name", "value": {"stringValue": "deployments"}},
			{"key": "event.domain", "value": {"stringValue": "k8s"}},
			{"key": "event.name", "value": {"stringValue": "web"}},
			{"key": "k8s.namespace.name", "value": {"stringValue": "shop"}},
			{"key": "k8s.deployment.name", "value": {"stringValue": "web"}},
			{"key": "k8s.deployment.uid", "value": {"stringValue": "u1"}},
			{"key": "tattler.id", "value": {"stringValue": "ID"}},
			{"key": "tattler.op", "value": {"stringValue": "updated"}},
			{"key": "tattler.subject", "value": {"stringValue": "/apis/apps/v1/namespaces/shop/deployments/web"}},
			{"key": "tattler.truncated", "value": {"boolValue": true}},
			{"key": "tattler.filter_error", "value": {"stringValue": "no such key"}}
		],
		"body": {"kvlistValue": {"values": [
			{"key": "data", "value": {"kvlistValue": {"values": [
				{"key": "changes", "value": {"arrayValue": {"values": [{"kvlistValue": {"values": [
					{"key": "from", "value": {}},
					{"key": "manager", "value": {"stringValue": "kubectl"}},
					{"key": "op", "value": {"stringValue": "replace"}},
					{"key": "path", "value": {"stringValue": "spec.replicas"}},
					{"key": "to", "value": {"intValue": "3"}}
				]}}]}}},
				{"key": "filterError", "value": {"stringValue": "no such key"}},
				{"key": "observed", "value": {"kvlistValue": {"values": [{"key": "at", "value": {"stringValue": "1970-01-01T00:00:01.000Z"}}]}}},
				{"key": "op", "value": {"stringValue": "updated"}},
				{"key": "resource", "value": {"kvlistValue": {"values": [
					{"key": "group", "value": {"stringValue": "apps"}},
					{"key": "kind", "value": {"stringValue": "Deployment"}},
					{"key": "name", "value": {"stringValue": "web"}},
					{"key": "namespace", "value": {"stringValue": "shop"}},
					{"key": "resource", "value": {"stringValue": "deployments"}},
					{"key": "resourceVersion", "value": {"stringValue": "7"}},
					{"key": "uid", "value": {"stringValue": "u1"}},
					{"key": "version", "value": {"stringValue": "v1"}}
				]}}},
				{"key": "severity", "value": {"stringValue": "change"}},
				{"key": "truncated", "value": {"boolValue": true}}
			]}}},
			{"key": "datacontenttype", "value": {"stringValue": "application/json"}},
			{"key": "id", "value": {"stringValue": "ID"}},
			{"key": "partitionkey", "value": {"stringValue": "u1"}},
			{"key": "source", "value": {"stringValue": "/clusters/prod"}},
			{"key": "specversion", "value": {"stringValue": "1.0"}},
			{"key": "subject", "value": {"stringValue": "/apis/apps/v1/namespaces/shop/deployments/web"}},
			{"key": "time", "value": {"stringValue": "2026-11-21T10:00:00.500Z"}},
			{"key": "type", "value": {"stringValue": "dev.tattler.change.updated.v1"}}
		]}}
	}`
	same(t, strings.ReplaceAll(want, `"ID"`, `"`+m.ID+`"`), must(record(m, BodyEvent))(t))
}

func same(t *testing.T, want string, got *logspb.LogRecord) {
	t.Helper()
	w := &logspb.LogRecord{}
	if err := protojson.Unmarshal([]byte(want), w); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, got, protocmp.Transform()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestObject checks that the bodies are those of the k8sobjects receiver while it watches.
func TestObject(t *testing.T) {
	whole := func(name string) map[string]any {
		return map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": name}}
	}
	const named = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","resourceVersion":"7","uid":"u1"}}`
	for _, tc := range []struct {
		why  string
		d    event.Data
		want string
	}{
		{"a list is a row of additions", event.Data{Op: event.Snapshot, After: whole("a")}, `{"object":{"kind":"Deployment","metadata":{"name":"a"}},"type":"ADDED"}`},
		{"new", event.Data{Op: event.Created, After: whole("a")}, `{"object":{"kind":"Deployment","metadata":{"name":"a"}},"type":"ADDED"}`},
		{"a watch with a selector adds", event.Data{Op: event.Entered, After: whole("a")}, `{"object":{"kind":"Deployment","metadata":{"name":"a"}},"type":"ADDED"}`},
		{"include: [before, after]", event.Data{Op: event.Updated, Before: whole("b"), After: whole("a")}, `{"object":{"kind":"Deployment","metadata":{"name":"a"}},"type":"MODIFIED"}`},
		{"an update without its object: what was is not what is", event.Data{Op: event.Updated, Before: whole("b")}, `{"object":` + named + `,"type":"MODIFIED"}`},
		{"gone", event.Data{Op: event.Deleted, Before: whole("b")}, `{"object":{"kind":"Deployment","metadata":{"name":"b"}},"type":"DELETED"}`},
		{"a watch with a selector deletes", event.Data{Op: event.Left, Before: whole("b")}, `{"object":{"kind":"Deployment","metadata":{"name":"b"}},"type":"DELETED"}`},
		{"cut, as too long", event.Data{Op: event.Deleted}, `{"object":` + named + `,"type":"DELETED"}`},
	} {
		tc.d.Resource = deployment
		r := must(record(message(t, tc.d), BodyObject))(t)
		var want any
		if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(anyValue(want), r.Body, protocmp.Transform()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, d)
		}
		if r.EventName != "" {
			t.Errorf("%s: the receiver sets no event name, got %q", tc.why, r.EventName)
		}
	}
	gap := must(record(message(t, event.Data{Op: event.Gap, Resource: event.Resource{Version: "v1", Resource: "pods", Kind: "Pod"}, Gap: &event.GapInfo{}}), BodyObject))(t)
	if d := cmp.Diff(anyValue(map[string]any{"type": "GAP", "object": map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{}}}), gap.Body, protocmp.Transform()); d != "" {
		t.Errorf("a gap (-want +got):\n%s", d)
	}
	if gap.SeverityText != "WARN" || gap.SeverityNumber != logspb.SeverityNumber_SEVERITY_NUMBER_WARN {
		t.Errorf("a gap has the severity %s %v", gap.SeverityText, gap.SeverityNumber)
	}
}

// TestConventions checks which attributes the semantic conventions have for an object.
func TestConventions(t *testing.T) {
	for _, tc := range []struct {
		why  string
		r    event.Resource
		want string
	}{
		{"a pod", event.Resource{Resource: "pods", Namespace: "shop", Name: "p", UID: "u"}, "k8s.namespace.name=shop k8s.pod.name=p k8s.pod.uid=u"},
		{"a node", event.Resource{Resource: "nodes", Name: "n", UID: "u"}, "k8s.node.name=n k8s.node.uid=u"},
		{"a namespace is its own", event.Resource{Resource: "namespaces", Namespace: "shop", Name: "shop", UID: "u"}, "k8s.namespace.name=shop"},
		{"a claim", event.Resource{Resource: "persistentvolumeclaims", Name: "c", UID: "u"}, "k8s.persistentvolumeclaim.name=c k8s.persistentvolumeclaim.uid=u"},
		{"another group's pods", event.Resource{Group: "metrics.k8s.io", Resource: "pods", Namespace: "shop", Name: "p", UID: "u"}, "k8s.namespace.name=shop"},
		{"no convention", event.Resource{Resource: "configmaps", Namespace: "shop", Name: "c", UID: "u"}, "k8s.namespace.name=shop"},
	} {
		var got []string
		for _, kv := range must(record(message(t, event.Data{Op: event.Created, Resource: tc.r}), BodyEvent))(t).Attributes {
			if strings.HasPrefix(kv.Key, "k8s.") && kv.Key != "k8s.resource.name" {
				got = append(got, kv.Key+"="+kv.Value.GetStringValue())
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: %s, want %s", tc.why, s, tc.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct {
		why, text, want string
	}{
		{"integers stay integers", "9007199254740993", `int_value:9007199254740993`},
		{"the least", "-9223372036854775808", `int_value:-9223372036854775808`},
		{"beyond", "9223372036854775808", `double_value:9.223372036854776e+18`},
		{"a fraction", "1.5", `double_value:1.5`},
		{"beyond what a float holds", "1e999", `string_value:"1e999"`},
	} {
		got := strings.ReplaceAll(must(decode([]byte(tc.text)))(t).String(), " ", "")
		if strings.ReplaceAll(tc.want, " ", "") != got {
			t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
		}
	}
	if v := anyValue(math.MaxInt64); v.GetIntValue() != math.MaxInt64 {
		t.Errorf("an int: %v", v)
	}
	if v := anyValue("a\xff"); v.GetStringValue() != "a\uFFFD" {
		t.Errorf("no UTF-8: %v", v)
	}
}

// TestRequest checks that the order is kept if namespaces alternate, and that each resource describes its records.
func TestRequest(t *testing.T) {
	s := must(New("tattler/v1.2.3", Options{Endpoint: "http://h", Resource: map[string]string{"service.name": "mine", "a": "b"}}))(t)
	var ms []sink.Message
	for _, ns := range []string{"a", "a", "b", "a"} {
		ms = append(ms, message(t, event.Data{Op: event.Created, Resource: event.Resource{Resource: "pods", Namespace: ns, Name: ns}}))
	}
	req := s.request(must(s.entries(ms))(t))
	var got []string
	for _, g := range req.ResourceLogs {
		var kv []string
		for _, a := range g.Resource.Attributes {
			kv = append(kv, a.Key+"="+a.Value.GetStringValue())
		}
		scope := g.ScopeLogs[0].Scope
		got = append(got, strings.Join(kv, " ")+" "+scope.Name+" "+scope.Version+" "+strings.Repeat("x", len(g.ScopeLogs[0].LogRecords)))
	}
	resource := func(ns string) string {
		return "a=b k8s.cluster.name=prod k8s.namespace.name=" + ns + " service.name=mine tattler v1.2.3 "
	}
	if d := cmp.Diff([]string{resource("a") + "xx", resource("b") + "x", resource("a") + "x"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if n := len(must(s.entries(sinktest.Messages(0, 100)))(t)); n != 100 {
		t.Errorf("%d of 100 small messages are in a request", n)
	}
}
