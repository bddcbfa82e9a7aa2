package torture

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestParseAsk: what counts as an ask, and as which.
func TestParseAsk(t *testing.T) {
	for url, want := range map[string]ask{
		"/api/v1/configmaps":                                                   {kind: "configmaps", what: lists},
		"/api/v1/configmaps?limit=500&continue=abc":                            {kind: "configmaps", what: lists},
		"/api/v1/configmaps?limit=1":                                           {kind: "configmaps", what: probes},
		"/api/v1/namespaces/n/secrets?watch=true&resourceVersion=7":            {kind: "secrets", namespace: "n", what: watches, from: "7"},
		"/apis/apps/v1/deployments?watch=1&sendInitialEvents=true":             {kind: "deployments.apps", what: streams},
		"/apis/torture.tattler.dev/v1/namespaces/n/gadgets?watch=1":            {kind: "gadgets.torture.tattler.dev", namespace: "n", what: watches},
		"/api/v1/namespaces/n/configmaps/a":                                    {},
		"/api/v1/namespaces":                                                   {},
		"/apis/apps/v1/namespaces/n/configmaps?watch=1&sendInitialEvents=true": {},
	} {
		r := httptest.NewRequest(http.MethodGet, url, nil)
		r.Header.Set("Authorization", "Bearer run-12")
		got := parseAsk(r)
		if want.kind == "" {
			if got != nil {
				t.Errorf("%s is %v", url, got)
			}
			continue
		}
		r.Header.Set("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		if audit := parseAsk(r); want.what == lists && audit.what != audits {
			t.Errorf("%s for metadata is %v", url, audit)
		}
		if want.run = 12; got == nil {
			t.Errorf("%s is no ask", url)
		} else if got.at = (time.Time{}); *got != want {
			t.Errorf("%s is %+v, want %+v", url, *got, want)
		}
	}
}

// TestListener: what is noted of an answer, in whatever pieces it comes.
func TestListener(t *testing.T) {
	object := func(version string, end bool) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
		if end {
			o.Annotations = map[string]string{initialEnd: "true"}
		}
		return o
	}
	frame := func(kind string, m interface{ Marshal() ([]byte, error) }) []byte {
		raw, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = (&runtime.Unknown{Raw: raw}).Marshal(); err != nil {
			t.Fatal(err)
		}
		e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), raw...)}}
		if raw, err = e.Marshal(); err != nil {
			t.Fatal(err)
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
	}
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	const gone = `{"type":"ERROR","object":{"kind":"Status","code":410}}` + "\n"
	for _, tc := range []struct {
		why      string
		ask      ask
		protobuf bool
		text     []byte
		want     ask
	}{
		{"a watch in protobuf", ask{what: watches, from: "5"}, true,
			join(frame("ADDED", object("7", false)), frame("BOOKMARK", object("12", false))), ask{what: watches, from: "5", to: "12"}},
		{"refused in protobuf", ask{what: watches, from: "5"}, true,
			frame("ERROR", &metav1.Status{Code: http.StatusGone}), ask{what: watches, from: "5", code: 410, at410: "5"}},
		{"refused in JSON", ask{what: watches, from: "5"}, false, []byte(gone), ask{what: watches, from: "5", code: 410, at410: "5"}},
		{"refused later on", ask{what: watches, from: "5"}, true,
			join(frame("ADDED", object("7", false)), frame("ERROR", &metav1.Status{Code: http.StatusGone})), ask{what: watches, from: "5", to: "7", code: 410, at410: "7"}},
		{"another error", ask{what: watches, from: "5"}, true,
			frame("ERROR", &metav1.Status{Code: http.StatusInternalServerError}), ask{what: watches, from: "5", code: 500}},
		{"a streaming list, and the watch that it becomes", ask{what: streams}, true,
			join(frame("ADDED", object("3", false)), frame("BOOKMARK", object("9", true)), frame("MODIFIED", object("10", false))), ask{what: streams, whole: true, list: "9", to: "10"}},
		{"a streaming list without its end", ask{what: streams}, true,
			join(frame("ADDED", object("3", false)), frame("BOOKMARK", object("9", true))[:9]), ask{what: streams}},
		{"a streaming list in JSON", ask{what: streams}, false,
			[]byte(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n" +
				`{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"}}}` + "\n"), ask{what: streams, whole: true, list: "9", to: "11"}},
	} {
		for _, size := range []int{1, 7, 1 << 10} {
			a := tc.ask
			l := &listener{observer: &observer{causes: &causes{}}, ask: &a, protobuf: tc.protobuf}
			for rest := tc.text; len(rest) > 0; {
				n := min(size, len(rest))
				l.frames(rest[:n])
				rest = rest[n:]
			}
			if a.until = (time.Time{}); a != tc.want || l.failed() != nil {
				t.Errorf("%s, %d bytes at once: %+v, want %+v (%v)", tc.why, size, a, tc.want, l.failed())
			}
		}
	}
	l := &listener{observer: &observer{causes: &causes{}}, ask: &ask{}}
	if l.frames([]byte("no JSON\n")); l.failed() == nil {
		t.Error("what cannot be read is no failure")
	}
}

// TestListenerPage: the version of a list is that of its last page.
func TestListenerPage(t *testing.T) {
	for _, tc := range []struct {
		text string
		want ask
	}{
		{`{"items":[{}],"metadata":{"resourceVersion":"8"}}`, ask{whole: true, list: "8"}},
		{`{"items":[{}],"metadata":{"resourceVersion":"8","continue":"abc"}}`, ask{}},
	} {
		a := ask{}
		l := &listener{observer: &observer{causes: &causes{}}, ask: &a}
		l.keep([]byte(tc.text[:9]))
		l.keep([]byte(tc.text[9:]))
		l.page()
		if a != tc.want || l.failed() != nil {
			t.Errorf("%s: %+v, want %+v (%v)", tc.text, a, tc.want, l.failed())
		}
	}
}
