package informertest_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tattler-dev/tattler/informer/informertest"
)

const (
	acceptProtobuf = "application/vnd.kubernetes.protobuf"
	asList         = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	asOne          = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// somePods returns objects with the fields in which encodings differ.
func somePods() []*corev1.Pod {
	grace := int64(30)
	return []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "own-uid", Labels: map[string]string{"app": "web", "a": "<&>"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: &grace}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0)),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}}}},
	}
}

// body returns a response body and checks its type.
func body(t *testing.T, s *informertest.Server, uri, accept, contentType string) []byte {
	t.Helper()
	resp, err := ask(t, s, uri, accept)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.body)
	if err != nil || resp.code != http.StatusOK {
		t.Fatalf("%s: %d, %v: %s", uri, resp.code, err, b)
	}
	if got := resp.header.Get("Content-Type"); got != contentType {
		t.Errorf("%s: Content-Type %q, want %q", uri, got, contentType)
	}
	return b
}

// TestEncoding compares every form of a body with what apimachinery's own serializers write.
func TestEncoding(t *testing.T) {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1002"}}
	s := informertest.NewServer()
	s.Serve(pods, "Pod")
	for i, p := range somePods() {
		if got, want := s.PutObject(pods, p), []string{"1001", "1002"}[i]; got != want || p.ResourceVersion != "" {
			t.Errorf("put %s: version %s, want %s; the caller's became %q", p.Name, got, want, p.ResourceVersion)
		}
		p.ResourceVersion = []string{"1001", "1002"}[i]
		p.UID = []types.UID{"own-uid", "uid-1"}[i]
		list.Items = append(list.Items, *p)
	}
	partial := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}, ListMeta: list.ListMeta}
	beta := &metav1beta1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1beta1"}, ListMeta: list.ListMeta}
	for i := range list.Items {
		m := meta.AsPartialObjectMetadata(&list.Items[i])
		m.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
		partial.Items = append(partial.Items, *m)
		m.APIVersion = "meta.k8s.io/v1beta1"
		beta.Items = append(beta.Items, *m)
	}
	one := list.Items[1].DeepCopy()
	one.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	asBeta := ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1"
	for _, c := range []struct {
		name, uri, as string
		want          runtime.Object
	}{
		{"list", "/api/v1/pods", "", list},
		{"list of metadata", "/api/v1/pods", asList, partial},
		{"list of metadata, whose v1beta1 has its fields the other way round", "/api/v1/pods", asBeta, beta},
		{"empty list", "/api/v1/namespaces/x/pods", "", &corev1.PodList{TypeMeta: list.TypeMeta, ListMeta: list.ListMeta, Items: []corev1.Pod{}}},
		{"empty list of metadata, whose items are null", "/api/v1/namespaces/x/pods", asList, &metav1.PartialObjectMetadataList{TypeMeta: partial.TypeMeta, ListMeta: list.ListMeta}},
		{"object", "/api/v1/namespaces/n/pods/b", "", one},
		{"metadata", "/api/v1/namespaces/n/pods/b", asOne, &partial.Items[1]},
	} {
		for accept, serializer := range map[string]runtime.Encoder{
			acceptProtobuf:     protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
			"application/json": json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{}),
		} {
			var want bytes.Buffer
			if err := serializer.Encode(c.want, &want); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time from the stored encoding
				if got := body(t, s, c.uri, accept+c.as, accept); !bytes.Equal(got, want.Bytes()) {
					t.Errorf("%s as %s: got\n%q\nwant\n%q", c.name, accept, got, want.Bytes())
				}
			}
		}
	}
}

// TestEventEncoding compares the frames of a watch with the output of apimachinery's serializers and framers.
func TestEventEncoding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		p := somePods()[0]
		s.PutObject(pods, p)
		s.Delete(pods, "n", "a")
		p.TypeMeta, p.ResourceVersion = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, "1001"
		gone := p.DeepCopy()
		gone.ResourceVersion = "1002"
		mark := &corev1.Pod{TypeMeta: p.TypeMeta, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1002"}}
		partial := func(p *corev1.Pod) runtime.Object {
			m := meta.AsPartialObjectMetadata(p)
			m.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
			return m
		}
		whole := func(p *corev1.Pod) runtime.Object { return p }
		jsonSerializer := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
		for _, c := range []struct {
			accept, contentType string
			as                  func(*corev1.Pod) runtime.Object
			object, event       runtime.Encoder
			framer              runtime.Framer
		}{
			{acceptProtobuf + ";stream=watch", acceptProtobuf + ";stream=watch", whole,
				protobuf.NewSerializer(nil, nil), protobuf.NewRawSerializer(nil, nil), protobuf.LengthDelimitedFramer},
			{acceptProtobuf + asOne, acceptProtobuf + ";stream=watch", partial,
				protobuf.NewSerializer(nil, nil), protobuf.NewRawSerializer(nil, nil), protobuf.LengthDelimitedFramer},
			{"application/json;stream=watch", "application/json", whole, jsonSerializer, jsonSerializer, json.Framer},
			{"application/json" + asOne, "application/json", partial, jsonSerializer, jsonSerializer, json.Framer},
		} {
			var want bytes.Buffer
			w := c.framer.NewFrameWriter(&want)
			for _, e := range []struct {
				name string
				pod  *corev1.Pod
			}{{"ADDED", p}, {"DELETED", gone}, {"BOOKMARK", mark}} {
				var object, frame bytes.Buffer
				if err := c.object.Encode(c.as(e.pod), &object); err != nil {
					t.Fatal(err)
				}
				if err := c.event.Encode(&metav1.WatchEvent{Type: e.name, Object: runtime.RawExtension{Raw: object.Bytes()}}, &frame); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(frame.Bytes()); err != nil {
					t.Fatal(err)
				}
			}
			got := body(t, s, "/api/v1/pods?watch=1&resourceVersion=1000&timeoutSeconds=5&allowWatchBookmarks=1", c.accept, c.contentType)
			if !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%s: got\n%q\nwant\n%q", c.accept, got, want.Bytes())
			}
		}
	})
}

// TestMapsAreReadIntoTypes: an object put as a map is encoded in protobuf as if it had been written to a real
// server.
func TestMapsAreReadIntoTypes(t *testing.T) {
	s := informertest.NewServer()
	s.Serve(pods, "Pod")
	s.Put(pods, "n", "a", map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"nodeName": "node", "unknown": 1, "terminationGracePeriodSeconds": 30},
	})
	var want bytes.Buffer
	grace := int64(30)
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "uid-1", ResourceVersion: "1001", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "node", TerminationGracePeriodSeconds: &grace},
	}
	if err := protobuf.NewSerializer(nil, nil).Encode(p, &want); err != nil {
		t.Fatal(err)
	}
	if got := body(t, s, "/api/v1/namespaces/n/pods/a", acceptProtobuf, acceptProtobuf); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("got\n%q\nwant\n%q", got, want.Bytes())
	}
	if got := s.Objects(pods)["n/a"]["spec"].(map[string]any)["unknown"]; got != 1 {
		t.Errorf("the map has %v, want it unchanged", got)
	}
}

// TestNegotiation: the media types of an Accept header, in its order.
func TestNegotiation(t *testing.T) {
	const (
		pod, podList  = "/api/v1/namespaces/n/pods/a", "/api/v1/pods"
		widgetList    = "/apis/example.com/v1/widgets"
		jsonStatus    = "406 application/json"
		protobufFirst = acceptProtobuf + ",application/json"
	)
	for _, c := range []struct{ why, uri, accept, want string }{
		{"no Accept header means JSON", podList, "", "200 application/json"},
		{"so is anything", podList, "*/*", "200 application/json"},
		{"the first that can be served", podList, protobufFirst, "200 " + acceptProtobuf},
		{"in the order of the header", podList, "application/json, " + acceptProtobuf, "200 application/json"},
		{"unless a quality says otherwise", podList, "application/json;q=0.5, " + acceptProtobuf + ";q=0.9", "200 " + acceptProtobuf},
		{"a wildcard comes last", podList, "*/*, " + acceptProtobuf, "200 " + acceptProtobuf},
		{"an unknown type is skipped", podList, "application/cbor, application/json", "200 application/json"},
		{"nothing fits", podList, "application/cbor", jsonStatus},
		{"a custom kind has no protobuf, but its errors have", widgetList, acceptProtobuf, "406 " + acceptProtobuf},
		{"and is sent as JSON if that is accepted", widgetList, protobufFirst, "200 application/json"},
		{"but its metadata has", widgetList, acceptProtobuf + asList, "200 " + acceptProtobuf},
		{"metadata of an object", pod, acceptProtobuf + asOne, "200 " + acceptProtobuf},
		{"metadata in an unknown version", pod, acceptProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v9", jsonStatus},
		{"a table is skipped", podList, "application/json;as=Table;g=meta.k8s.io;v=v1, application/json", "200 application/json"},
		{"a list is not an object", podList, "application/json" + asOne, jsonStatus},
		{"an object is not a list", pod, "application/json" + asList, jsonStatus},
		{"an unknown stream", podList, "application/json;stream=x", jsonStatus},
		{"an error is an object", pod + "x", protobufFirst, "404 " + acceptProtobuf},
		{"of custom kinds, too", widgetList + "/x", protobufFirst, "404 " + acceptProtobuf},
		{"in JSON if no whole object is accepted", pod + "x", acceptProtobuf + asOne, "404 application/json"},
		{"or the first type that accepts one", pod + "x", "application/json" + asOne + "," + acceptProtobuf, "404 " + acceptProtobuf},
	} {
		s := two()
		resp, err := ask(t, s, c.uri, c.accept)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.body)
		if err != nil {
			t.Fatal(err)
		}
		typ := resp.header.Get("Content-Type")
		if got := strconv.Itoa(resp.code) + " " + typ; got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
		if isProtobuf := bytes.HasPrefix(b, []byte("k8s\x00")); isProtobuf != (typ == acceptProtobuf) {
			t.Errorf("%s: %s is %q", c.why, typ, b)
		}
		if got := s.Recorded()[0]; got.Path != c.uri || got.Accept != c.accept || got.Proto != "HTTP/1.1" {
			t.Errorf("%s: recorded %+v", c.why, got)
		}
	}
}
