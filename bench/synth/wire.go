package synth

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tattler-dev/tattler/bench/gen"
)

// magic begins every Kubernetes object in protobuf.
const magic = "k8s\x00"

// accepted is the first format of the request's Accept that this server supports. It serves metadata-only lists,
// in protobuf, but not metadata-only watches or Tables.
func accepted(r *http.Request) (f gen.Format, ok bool) {
	for _, clause := range strings.Split(r.Header.Get("Accept"), ",") {
		media, params, err := mime.ParseMediaType(clause)
		if err == nil && params["as"] == "PartialObjectMetadataList" && media == "application/vnd.kubernetes.protobuf" {
			return metadata, true
		}
		if err != nil || params["as"] != "" {
			continue
		}
		switch media {
		case "application/vnd.kubernetes.protobuf":
			return gen.Protobuf, true
		case "application/json", "*/*":
			return gen.JSON, true
		}
	}
	return 0, r.Header.Get("Accept") == ""
}

// metadata is a metadata-only list in protobuf.
const metadata gen.Format = 255

// begin writes the response's header.
func begin(w http.ResponseWriter, f gen.Format, watch bool) {
	media := "application/json"
	if f == gen.Protobuf || f == metadata {
		media = "application/vnd.kubernetes.protobuf"
		if watch {
			media += ";stream=watch"
		}
	}
	w.Header().Set("Content-Type", media)
}

// envelope begins an object in protobuf. The message, of size bytes, and end follow.
func envelope(apiVersion, kind string, size int) (start, end []byte) {
	var meta []byte
	meta = protowire.AppendString(protowire.AppendTag(meta, 1, protowire.BytesType), apiVersion)
	meta = protowire.AppendString(protowire.AppendTag(meta, 2, protowire.BytesType), kind)
	start = protowire.AppendBytes(protowire.AppendTag([]byte(magic), 1, protowire.BytesType), meta)
	start = protowire.AppendVarint(protowire.AppendTag(start, 2, protowire.BytesType), uint64(size))
	for _, n := range []protowire.Number{3, 4} { // contentEncoding and contentType: empty
		end = protowire.AppendString(protowire.AppendTag(end, n, protowire.BytesType), "")
	}
	return start, end
}

// itemSize is the size of a list item with its tag and length.
func itemSize(n int) int { return 1 + protowire.SizeBytes(n) }

// frames writes the events of a watch.
type frames struct {
	w       *bufio.Writer
	format  gen.Format
	encoder *gen.Encoder
	object  []byte
	scratch []byte
}

// pod writes an event of a pod.
func (f *frames) pod(e event) error {
	f.object = f.encoder.Append(f.object[:0], e.pod, e.step, e.version)
	if f.format == gen.JSON { // {"metadata":… → {"kind":"Pod","apiVersion":"v1","metadata":…
		return f.json(e.kind, `{"kind":"Pod","apiVersion":"v1",`, f.object[1:])
	}
	return f.protobuf(e.kind, "Pod", f.object)
}

// bookmark writes a bookmark. The one that ends a streaming list is annotated.
func (f *frames) bookmark(version uint64, end bool) error {
	if f.format == gen.JSON {
		note := ""
		if end {
			note = `,"annotations":{"k8s.io/initial-events-end":"true"}`
		}
		return f.json("BOOKMARK", `{"kind":"Pod","apiVersion":"v1",`, fmt.Appendf(nil, `"metadata":{"resourceVersion":"%d","creationTimestamp":null%s},"spec":{"containers":null},"status":{}}`, version, note))
	}
	var meta []byte
	meta = protowire.AppendString(protowire.AppendTag(meta, 6, protowire.BytesType), fmt.Sprint(version))
	if end {
		var entry []byte
		entry = protowire.AppendString(protowire.AppendTag(entry, 1, protowire.BytesType), "k8s.io/initial-events-end")
		entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), "true")
		meta = protowire.AppendBytes(protowire.AppendTag(meta, 12, protowire.BytesType), entry)
	}
	return f.protobuf("BOOKMARK", "Pod", protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), meta))
}

// expired writes an error event: the history begins after the watch's version.
func (f *frames) expired() error {
	if f.format == gen.JSON {
		return f.json("ERROR", "", status(http.StatusGone, "Expired", "too old resource version"))
	}
	var b []byte
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), "Failure")
	b = protowire.AppendString(protowire.AppendTag(b, 3, protowire.BytesType), "too old resource version")
	b = protowire.AppendString(protowire.AppendTag(b, 4, protowire.BytesType), "Expired")
	b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), http.StatusGone)
	return f.protobuf("ERROR", "Status", b)
}

func (f *frames) json(kind, start string, rest []byte) error {
	fmt.Fprintf(f.w, `{"type":"%s","object":%s`, kind, start)
	_, _ = f.w.Write(rest)
	_, err := f.w.WriteString("}\n") // the writer keeps the first error
	return err
}

// protobuf writes a frame: its length, and WatchEvent{type, RawExtension{object}}.
func (f *frames) protobuf(kind, of string, message []byte) error {
	start, end := envelope("v1", of, len(message))
	object := len(start) + len(message) + len(end)
	b := append(f.scratch[:0], 0, 0, 0, 0)
	b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), kind)
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.BytesType), uint64(itemSize(object)))
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.BytesType), uint64(object))
	b = append(b, start...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4+len(message)+len(end)))
	f.scratch = b
	_, _ = f.w.Write(b)
	_, _ = f.w.Write(message)
	_, err := f.w.Write(end)
	return err
}

func status(code int, reason, message string) []byte {
	return fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

// refuse responds with a Status.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(status(code, reason, message))
}
