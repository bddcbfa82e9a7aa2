package informertest

import (
	"cmp"
	"mime"
	"slices"
	"strconv"
	"strings"
)

// media is the encoding of a response.
type media struct {
	protobuf bool
	partial  string // the version of meta.k8s.io for PartialObjectMetadata; "": whole objects
	list     bool   // PartialObjectMetadataList was requested
}

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

func (m media) contentType() string {
	if m.protobuf {
		return protobufType
	}
	return jsonType
}

// clause is one media type of an Accept header.
type clause struct {
	mediaType string
	params    map[string]string
	quality   float64
}

// clauses returns the accepted types, best first: by quality, then, as in API servers, in the order of the
// header, wildcards last.
func clauses(accept string) []clause {
	if strings.TrimSpace(accept) == "" {
		accept = "*/*"
	}
	var all []clause
	for part := range strings.SplitSeq(accept, ",") {
		t, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		c := clause{t, params, 1}
		if q, ok := params["q"]; ok {
			c.quality, _ = strconv.ParseFloat(q, 64) // 0, refused, if it is not a number
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b clause) int {
		return cmp.Or(cmp.Compare(b.quality, a.quality),
			cmp.Compare(strings.Count(a.mediaType, "*"), strings.Count(b.mediaType, "*")))
	})
	return all
}

func (c clause) matches(contentType string) bool {
	return c.mediaType == contentType || c.mediaType == "application/*" || c.mediaType == "*/*"
}

// negotiate chooses the first clause that can be served: JSON before protobuf for a wildcard, and protobuf of
// whole objects only if the kind has it. ok is false if there is no such clause: 406.
func negotiate(accept string, protobuf bool) (m media, ok bool) {
	return choose(clauses(accept), protobuf)
}

// forError returns the encoding of an error: as a whole object, and in JSON if no clause accepts whole objects.
func forError(accept string) media {
	whole := slices.DeleteFunc(clauses(accept), func(c clause) bool {
		partial, _, _ := c.target()
		return partial != ""
	})
	m, _ := choose(whole, true)
	return m
}

func choose(clauses []clause, protobuf bool) (m media, ok bool) {
	for _, c := range clauses {
		partial, list, known := c.target()
		if !known {
			continue
		}
		for _, m := range []media{{false, partial, list}, {true, partial, list}} {
			if c.matches(m.contentType()) && (!m.protobuf || protobuf || m.partial != "") {
				return m, true
			}
		}
	}
	return media{}, false
}

// target returns the object form that the clause requests; known is false if this server does not support it.
func (c clause) target() (partial string, list, known bool) {
	if stream := c.params["stream"]; stream != "" && stream != "watch" {
		return "", false, false
	}
	as, group, version := c.params["as"], c.params["g"], c.params["v"]
	switch {
	case as == "" && group == "" && version == "":
		return "", false, true
	case group != "meta.k8s.io" || version != "v1" && version != "v1beta1":
		return "", false, false
	case as == "PartialObjectMetadata", as == "PartialObjectMetadataList":
		return version, as == "PartialObjectMetadataList", true
	}
	return "", false, false
}
