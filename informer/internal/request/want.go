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

// Want describes the acceptable responses. JSON is always accepted.
type Want struct {
	// Protobuf is preferred to JSON.
	Protobuf bool
	// Metadata requests only the objects' metadata. A server that does not support this sends whole objects,
	// whose metadata can be read as well.
	Metadata bool
	// Watch requests a stream of events.
	Watch bool
}

// accept returns the Accept header.
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

// String lists the formats, for errors.
func (w Want) String() string {
	if w.Protobuf {
		return "protobuf or JSON"
	}
	return "JSON"
}

// formatOf reads a Content-Type; it returns 0 for an unexpected type. A missing type means JSON: some
// aggregated API servers send none.
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
