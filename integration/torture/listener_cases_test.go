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

// TestParseRequest: which requests count, and as which kind.
func TestParseRequest(t *testing.T) {
	for url, want := range map[string]request{
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
		got := parseRequest(r)
		if want.kind == "" {
			if got != nil {
				t.Errorf("%s is %v", url, got)
			}
			continue
		}
		r.Header.Set("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		if audit := parseRequest(r); want.what == lists && audit.what != audits {
			t.Errorf("%s for metadata is %v", url, audit)
		}
		if want.run = 12; got == nil {
			t.Errorf("%s is not counted", url)
		} else if got.at = (time.Time{}); *got != want {
			t.Errorf("%s is %+v, want %+v", url, *got, want)
		}
	}
}

// TestListener: the contents noted of a response, in pieces of any size.
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
		request  request
		protobuf bool
		text     []byte
		want     request
	}{
		{"a watch in protobuf", request{what: watches, from: "5"}, true,
			join(frame("ADDED", object("7", false)), frame("BOOKMARK", object("12", false))), request{what: watches, from: "5", to: "12"}},
		{"refused in protobuf", request{what: watches, from: "5"}, true,
			frame("ERROR", &metav1.Status{Code: http.StatusGone}), request{what: watches, from: "5", code: 410, at410: "5"}},
		{"refused in JSON", request{what: watches, from: "5"}, false, []byte(gone), request{what: watches, from: "5", code: 410, at410: "5"}},
		{"refused later on", request{what: watches, from: "5"}, true,
			join(frame("ADDED", object("7", false)), frame("ERROR", &metav1.Status{Code: http.StatusGone})), request{what: watches, from: "5", to: "7", code: 410, at410: "7"}},
		{"another error", request{what: watches, from: "5"}, true,
			frame("ERROR", &metav1.Status{Code: http.StatusInternalServerError}), request{what: watches, from: "5", code: 500}},
		{"a streaming list that becomes a watch", request{what: streams}, true,
			join(frame("ADDED", object("3", false)), frame("BOOKMARK", object("9", true)), frame("MODIFIED", object("10", false))), request{what: streams, whole: true, list: "9", to: "10"}},
		{"a streaming list without its end", request{what: streams}, true,
			join(frame("ADDED", object("3", false)), frame("BOOKMARK", object("9", true))[:9]), request{what: streams}},
		{"a streaming list in JSON", request{what: streams}, false,
			[]byte(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n" +
				`{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"}}}` + "\n"), request{what: streams, whole: true, list: "9", to: "11"}},
	} {
		for _, size := range []int{1, 7, 1 << 10} {
			a := tc.request
			l := &listener{observer: &observer{causes: &causes{}}, request: &a, protobuf: tc.protobuf}
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
	l := &listener{observer: &observer{causes: &causes{}}, request: &request{}}
	if l.frames([]byte("no JSON\n")); l.failed() == nil {
		t.Error("an unreadable response is not a failure")
	}
}

// TestListenerPage: the version of a list is that of its last page.
func TestListenerPage(t *testing.T) {
	for _, tc := range []struct {
		text string
		want request
	}{
		{`{"items":[{}],"metadata":{"resourceVersion":"8"}}`, request{whole: true, list: "8"}},
		{`{"items":[{}],"metadata":{"resourceVersion":"8","continue":"abc"}}`, request{}},
	} {
		a := request{}
		l := &listener{observer: &observer{causes: &causes{}}, request: &a}
		l.keep([]byte(tc.text[:9]))
		l.keep([]byte(tc.text[9:]))
		l.page()
		if a != tc.want || l.failed() != nil {
			t.Errorf("%s: %+v, want %+v (%v)", tc.text, a, tc.want, l.failed())
		}
	}
}
