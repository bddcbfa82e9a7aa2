package doctor

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/internal/capture"
)

// uriResource stands for any resource, in errors of requests.
var uriResource = schema.GroupResource{}

// nobody is the name of an object that does not exist: lists of it are empty, and cost the server little.
const nobody = "tattler-no-such-object"

const (
	jsonMeta = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	protobuf = "application/vnd.kubernetes.protobuf"
	// initialEnd is the annotation of the bookmark that ends a streaming list.
	initialEnd = "k8s.io/initial-events-end"
)

// features checks streaming lists, and which API groups speak protobuf. They are optional.
func (x *examined) features(ctx context.Context) {
	if len(x.allowed) == 0 {
		x.add(Server, "streaming", Note, "streaming lists and protobuf were not checked: no kind may be listed", "", "")
		return
	}
	bounded, cancel := x.host.within(ctx, checkFeatures, x.name, featureTimeout)
	defer cancel()
	x.streaming(bounded, x.allowed[0])
	x.protobuf(bounded)
	x.history(ctx) // has its own deadline
}

// collection returns the path of a kind's list, in the first namespace of its plan.
func collection(k capture.Planned) string {
	path := "/apis/" + k.Resource.Group + "/" + k.Resource.Version
	if k.Resource.Group == "" {
		path = "/api/" + k.Resource.Version
	}
	if ns := k.Streams[0].Namespace; ns != "" {
		path += "/namespaces/" + ns
	}
	return path + "/" + k.Resource.Resource
}

// none selects nothing of a kind. A stream that may only read one name asks for that.
func none(k capture.Planned) string {
	name := nobody
	if own := k.Streams[0].Name; own != "" {
		name = own
	}
	return "metadata.name=" + name
}

// streaming asks for a streaming list of nothing, which ends with a bookmark.
func (x *examined) streaming(ctx context.Context, k capture.Planned) {
	q := url.Values{
		"watch": {"1"}, "sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "allowWatchBookmarks": {"true"},
		"timeoutSeconds": {"1"}, "fieldSelector": {none(k)},
	}
	_, body, err := x.get(ctx, collection(k)+"?"+q.Encode(), jsonMeta)
	switch {
	case err == nil && bytes.Contains(body, []byte(initialEnd)):
		x.add(Server, "streaming", OK, "streaming lists work", "", "")
	case err == nil, apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		x.add(Server, "streaming", Note, "the API server has no streaming lists", "First lists are read in pages, which costs the server more memory. Nothing is missed.", "")
	default:
		x.add(Server, "streaming", Note, "streaming lists could not be checked: "+x.cause(err), "", "")
	}
}

// protobuf asks one kind of each API group for an empty list.
func (x *examined) protobuf(ctx context.Context) {
	byGroup := map[string]capture.Planned{}
	var groups []string
	for _, k := range x.allowed {
		if _, known := byGroup[k.Resource.Group]; !known {
			byGroup[k.Resource.Group] = k
			groups = append(groups, k.Resource.Group)
		}
	}
	speaks := make([]string, len(groups))
	slots := make(chan struct{}, parallel)
	var asking sync.WaitGroup
	for i, g := range groups {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			k := byGroup[g]
			resp, _, err := x.get(ctx, collection(k)+"?"+url.Values{"limit": {"1"}, "fieldSelector": {none(k)}}.Encode(), protobuf)
			switch {
			case err == nil && strings.HasPrefix(resp.header.Get("Content-Type"), protobuf):
				speaks[i] = "yes"
			case resp != nil && (resp.code == http.StatusNotAcceptable || err == nil):
				speaks[i] = "no"
			}
		})
	}
	asking.Wait()
	of := func(answer string) (names []string) {
		for i, g := range groups {
			if speaks[i] == answer {
				if g == "" {
					g = "core"
				}
				names = append(names, g)
			}
		}
		slices.Sort(names)
		return names
	}
	if yes := of("yes"); len(yes) > 0 {
		x.add(Server, "protobuf", OK, "protobuf for "+listed(yes), "", "")
	}
	if no := of("no"); len(no) > 0 {
		x.add(Server, "protobuf", Note, "no protobuf for "+listed(no), "Custom resources never have it. tattler run reads JSON; typed informers of the library do so, too, for these groups.", "")
	}
	if unknown := of(""); len(unknown) > 0 {
		x.add(Server, "protobuf", Note, "protobuf could not be checked for "+listed(unknown), "", "")
	}
}

// parallel is how many requests are on their way at a time.
const parallel = 8
