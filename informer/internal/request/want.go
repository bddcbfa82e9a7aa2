package request

import (
	"mime"
	"strings"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Protobuf is for views of Go types only. A server that refuses it is asked for JSON for an hour, or for ten minutes
// after two 500s within a minute; one source may hold objects in both formats. Protobuf drops fields that a type does
// not know. The size of a typed decode shows that it is lossless, and a counter counts those that are not. The tool
// shows JSON only.

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// Want is what an answer may be. JSON is always accepted.
type Want struct {
	// Protobuf is preferred to JSON.
	Protobuf bool
	// Metadata asks for objects without what their kind adds to them. A server that cannot do that
	// sends whole objects, of which the metadata can be read as well.
	Metadata bool
	// Watch asks for a stream of events.
	Watch bool
}

// accept is the request's header.
func (w Want) accept() string {
	var params string
	if w.Watch {
		params = ";stream=watch"
	}
	if w.Metadata && w.Watch {
		params += ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	} else if w.Metadata {
		params += ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	}
	var types []string
	if w.Protobuf {
		types = append(types, mediaProtobuf+params)
	}
	types = append(types, mediaJSON+params)
	if params != "" {
		types = append(types, mediaJSON) // for servers that compare the whole text
	}
	return strings.Join(types, ",")
}

// String names the formats, for errors.
func (w Want) String() string {
	if w.Protobuf {
		return "protobuf or JSON"
	}
	return "JSON"
}

// formatOf reads a Content-Type; it returns 0 for what nobody asked for. A missing type means JSON:
// some aggregated API servers send none.
func formatOf(contentType string) wire.Format {
	if contentType == "" {
		return wire.JSON
	}
	t, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return 0
	case t == mediaJSON:
		return wire.JSON
	case t == mediaProtobuf:
		return wire.Protobuf
	}
	return 0
}
