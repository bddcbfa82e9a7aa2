package reconstruct

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/quiet"
)

var (
	pods        = change.Resource{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	secrets     = change.Resource{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true}
	events      = change.Resource{Version: "v1", Resource: "events", Kind: "Event", Namespaced: true}
	otherEvents = change.Resource{Group: "events.k8s.io", Version: "v1", Resource: "events", Kind: "Event", Namespaced: true}
	jobs        = change.Resource{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Namespaced: true}
	nodes       = change.Resource{Version: "v1", Resource: "nodes", Kind: "Node"}
)

// ten is the beginning of the window of all cases.
var ten = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	obj, _, err := jsonmap.DecodeObject([]byte(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return obj
}

// say describes an entry in one line: time, fact, and what the case is about.
func say(e Entry) string {
	d := e.Data
	text := e.Time.Format(time.TimeOnly)
	if !e.Since.IsZero() {
		text = e.Since.Format(time.TimeOnly) + "–" + text
	}
	text += " " + string(d.Fact)
	for _, part := range []string{d.Manager, d.Subresource, d.Container, d.Release, d.Revision, d.About, d.Status, d.Reason, d.Message} {
		if part != "" {
			text += " " + part
		}
	}
	for _, c := range d.Conditions {
		text += " " + c.Type + "=" + c.Status
	}
	if d.ExitCode != nil {
		text += fmt.Sprint(" exit ", *d.ExitCode)
	}
	if d.Count > 1 || d.Restarts > 0 {
		text += fmt.Sprint(" x", d.Count+d.Restarts)
	}
	if d.Began != nil {
		text += " from " + d.Began.Format(time.TimeOnly)
	}
	for _, f := range e.Fields {
		text += fmt.Sprintf(" %s=%v", f.Path, f.To)
	}
	if d.Severity != event.Normal {
		text += " (" + string(d.Severity) + ")"
	}
	if e.Quiet {
		text += " quiet"
	}
	return text
}

func TestOf(t *testing.T) {
	rules, err := quiet.New()
	if err != nil {
		t.Fatal(err)
	}
	const before, at1, at2 = `"2026-03-01T09:59:59Z"`, `"2026-03-01T10:01:00Z"`, `"2026-03-01T10:02:00Z"`
	for _, tc := range []struct {
		why  string
		kind change.Resource
		text string
		want string // lines, in the order of time
	}{
		{"nothing within the window", pods, `{"metadata":{"creationTimestamp":` + before + `,"managedFields":[{"manager":"m","time":` + before + `,"fieldsV1":{"f:spec":{}}}]}}`, ""},
		{"one writer: the creator", pods, `{"metadata":{"creationTimestamp":` + at1 + `,"managedFields":[{"manager":"kubectl-run","operation":"Update","time":` + at1 + `}]}}`,
			"10:01:00 created kubectl-run"},
		{"the only writer wrote later: who created is not known", things, `{"metadata":{"creationTimestamp":` + at1 + `,"managedFields":[{"manager":"m","operation":"Update","time":` + at2 + `,"fieldsV1":{"f:spec":{"f:a":{}}}}]},"spec":{"a":1}}`,
			"10:01:00 created ?\n10:02:00 written m spec.a=1"},
		{"the server took the time of the entry a moment earlier, in another second", things, `{"metadata":{"creationTimestamp":` + at2 + `,"managedFields":[{"manager":"m","operation":"Update","time":` + at1 + `}]}}`, "10:02:00 created m"},
		{"two writers: who created is not known", things, `{"metadata":{"creationTimestamp":` + at1 + `,"managedFields":[{"manager":"m","time":` + at1 + `},{"manager":"n","time":` + at2 + `}]}}`,
			"10:01:00 created ?\n10:01:00 written m\n10:02:00 written n"},
		{"a write through a subresource has no time", things, `{"metadata":{"creationTimestamp":` + before + `,"managedFields":[{"manager":"kubectl","subresource":"scale","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"replicas":3}}`, ""},
		{"merged entries have no manager", things, `{"metadata":{"creationTimestamp":` + before + `,"managedFields":[{"manager":"ancient-changes","time":` + at1 + `}]}}`, "10:01:00 written ?"},
		{"what existed before the first apply was not written then", things, `{"metadata":{"creationTimestamp":` + before + `,"managedFields":[{"manager":"before-first-apply","time":` + at1 + `}]}}`, ""},
		{"a manager of quiet fields", nodes, `{"metadata":{"creationTimestamp":` + before + `,"managedFields":[{"manager":"kubelet","subresource":"status","time":` + at1 + `,"fieldsV1":{"f:status":{"f:images":{}}}}]},"status":{"images":[{"names":["a"]}]}}`,
			"10:01:00 written kubelet status status.images=[map[names:[a]]] quiet"},
		{"a deletion with a grace period: the time of the request", pods, `{"metadata":{"creationTimestamp":` + before + `,"deletionTimestamp":"2026-03-01T10:01:30Z","deletionGracePeriodSeconds":30}}`, "10:01:00 deleting ?"},
		{"a deletion whose grace period is not known: an interval", things, `{"metadata":{"creationTimestamp":` + before + `,"deletionTimestamp":` + at1 + `}}`, "09:59:59–10:01:00 deleting ?"},
		{"conditions of one second, and an old one", pods, `{"metadata":{"creationTimestamp":` + before + `},"status":{"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady","lastTransitionTime":` + at1 + `},{"type":"ContainersReady","status":"False","lastTransitionTime":` + at1 + `},{"type":"Initialized","status":"True","lastTransitionTime":` + before + `}]}}`,
			"10:01:00 condition Ready=False ContainersReady=False (warning)"},
		{"a node that is not ready", nodes, `{"metadata":{"creationTimestamp":` + before + `},"status":{"conditions":[{"type":"Ready","status":"Unknown","lastTransitionTime":` + at1 + `,"lastHeartbeatTime":` + at2 + `}]}}`,
			"10:01:00 condition Ready=Unknown (failure)"},
		{"a status write that a condition explains", things, `{"metadata":{"creationTimestamp":` + before + `,"managedFields":[{"manager":"m","subresource":"status","time":` + at1 + `}]},"status":{"conditions":[{"type":"Ok","status":"True","lastTransitionTime":` + at1 + `}]}}`,
			"10:01:00 condition Ok=True"},
		{"a container that was killed and runs again", pods, `{"metadata":{"creationTimestamp":` + before + `},"status":{"containerStatuses":[{"name":"app","restartCount":2,"state":{"running":{"startedAt":` + at2 + `}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","startedAt":` + before + `,"finishedAt":` + at1 + `}}}]}}`,
			"10:01:00 terminated app OOMKilled exit 137 x2 from 09:59:59 (failure)\n10:02:00 restarted app x2"},
		{"the first start is not a restart", pods, `{"metadata":{"creationTimestamp":` + before + `},"status":{"containerStatuses":[{"name":"app","restartCount":0,"state":{"running":{"startedAt":` + at2 + `}}}]}}`, ""},
		{"a Job", jobs, `{"metadata":{"creationTimestamp":` + before + `},"status":{"startTime":` + at1 + `,"completionTime":` + at2 + `}}`, "10:02:00 finished from 10:01:00"},
		{"an Event that repeats", events, `{"type":"Warning","reason":"BackOff","message":"back-off","count":5,"firstTimestamp":` + at1 + `,"lastTimestamp":` + at2 + `,"source":{"component":"kubelet"},"involvedObject":{"kind":"Pod","name":"web"},"metadata":{"creationTimestamp":` + at1 + `}}`,
			"10:02:00 event kubelet pod/web Warning BackOff back-off x5 from 10:01:00 (warning)"},
		{"a series in the other group", otherEvents, `{"type":"Normal","reason":"Tick","note":"n","eventTime":` + at1 + `,"series":{"count":3,"lastObservedTime":` + at2 + `},"reportingController":"c","regarding":{"kind":"Node","name":"n1"}}`,
			"10:02:00 event c node/n1 Normal Tick n x3 from 10:01:00"},
		{"a Helm release that was replaced", secrets, `{"type":"helm.sh/release.v1","metadata":{"name":"sh.helm.release.v1.shop.v3","creationTimestamp":` + at1 + `,"labels":{"owner":"helm","name":"shop","version":"3","status":"superseded","modifiedAt":"1772359320"},"managedFields":[{"manager":"helm","time":` + at2 + `}]}}`,
			"10:01:00 release ? shop 3\n10:02:00 release ? shop 3 superseded"},
		{"a Helm release in its first state", secrets, `{"type":"helm.sh/release.v1","metadata":{"creationTimestamp":` + at1 + `,"labels":{"owner":"helm","name":"shop","version":"1","status":"deployed","createdAt":"1772359260"},"managedFields":[{"manager":"helm","time":` + at1 + `}]}}`,
			"10:01:00 release helm shop 1 deployed"},
		{"hostile shapes", pods, `{"metadata":{"creationTimestamp":7,"managedFields":[1,{"time":"x"}],"ownerReferences":{},"deletionTimestamp":[]},"status":{"conditions":[1,{}],"containerStatuses":{}}}`, ""},
	} {
		obj := decode(t, tc.text)
		var got []string
		entries := Of(tc.kind, obj, ten, rules)
		for i := range entries {
			if entries[i].Data.Evidence == "" {
				t.Errorf("%s: no evidence", tc.why)
			}
			for j := range i {
				if order(entries[j], entries[i]) > 0 {
					entries[i], entries[j] = entries[j], entries[i]
				}
			}
		}
		for _, e := range entries {
			got = append(got, say(e))
		}
		if strings.Join(got, "\n") != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.why, strings.Join(got, "\n"), tc.want)
		}
	}
}

// TestEventIdentity: the id of a reconstructed event is no id of a change, and depends on the evidence alone.
func TestEventIdentity(t *testing.T) {
	text := `{"metadata":{"namespace":"shop","name":"a","uid":"u","resourceVersion":"%d","creationTimestamp":"2026-03-01T10:01:00Z"}}`
	one, two := Of(things, decode(t, fmt.Sprintf(text, 1)), ten, nil)[0], Of(things, decode(t, fmt.Sprintf(text, 2)), ten, nil)[0]
	a, b := one.Event("prod"), two.Event("prod")
	if a.ID != b.ID || !strings.HasPrefix(a.ID, "reconstructed-") || a.Type != event.ReconstructedType || !a.Data.Reconstructed {
		t.Errorf("%+v\n%+v", a, b)
	}
	if a.Subject != "/apis/example.com/v1/namespaces/shop/things/a" || !a.Time.Equal(one.Time) {
		t.Errorf("%s at %v", a.Subject, a.Time)
	}
	if other := one.Event("test"); other.ID == a.ID {
		t.Error("two clusters share an id")
	}
}

// TestBound: however large an object's fields are, an entry is small.
func TestBound(t *testing.T) {
	obj := decode(t, `{"metadata":{"name":"a","uid":"a","creationTimestamp":"2026-03-01T09:00:00Z"},"data":{}}`)
	owned, data := map[string]any{}, map[string]any{}
	for n := range 200 {
		name := fmt.Sprintf("k%03d", n)
		owned["f:"+name], data[name] = map[string]any{}, strings.Repeat("x", 100+n*10)
	}
	obj["data"] = data
	change.Metadata(obj)["managedFields"] = []any{map[string]any{"manager": "m", "time": "2026-03-01T10:01:00Z", "fieldsV1": map[string]any{"f:data": owned}}}
	e := Of(things, obj, ten, nil)[0]
	size, left := 0, 0
	for _, f := range e.Fields {
		s, ok := f.To.(string)
		if size += len(s); !ok {
			left++
		}
	}
	if len(e.Fields) != maxFields || e.Data.More != 150 || size > maxValues || size < maxValues/2 || left == 0 {
		t.Errorf("%d fields, %d more, %d bytes of values, %d without a value", len(e.Fields), e.Data.More, size, left)
	}
}
