package informertest

import (
	"cmp"
	"mime"
	"slices"
	"strconv"
	"strings"
)

// media is how an answer is encoded.
type media struct {
	protobuf bool
	partial  string // the version of meta.k8s.io as whose metadata objects are sent; "": whole
	list     bool   // PartialObjectMetadataList was asked for
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

// clause is one of the media types in an Accept header.
type clause struct {
	mediaType string
	params    map[string]string
	quality   float64
}

// clauses returns what is accepted, best first: by quality, then, as API servers do it, in the order
// of the header, and wildcards last.
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
			c.quality, _ = strconv.ParseFloat(q, 64) // what is no number is refused
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

// negotiate chooses the first clause that can be served: JSON before protobuf within a wildcard, and
// protobuf of whole objects only where the kind has it. ok is false if there is none: 406.
func negotiate(accept string, protobuf bool) (m media, ok bool) {
	return choose(clauses(accept), protobuf)
}

// forError is how an error is told to who accepts this: as a whole object, and in JSON where no clause
// is for those.
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

// target is what objects are to be turned into; known is false if this server does not do that.
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
