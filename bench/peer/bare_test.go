package peer

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// frame returns a frame of a protobuf watch.
func frame(content string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(content)))) + content
}

// TestDrain: a streaming list ends with its bookmark, however the bytes are split. drain does not
// wait for the frames after it.
func TestDrain(t *testing.T) {
	pods := strings.Repeat(frame(strings.Repeat("p", 5000)), 300)
	proto := pods + frame("BOOKMARK k8s.io/initial-events-end true")
	json := strings.Repeat(`{"type":"ADDED"}`+"\n", 40_000) + `{"annotations":{"` + endMark + `":"true"}}`
	for _, c := range []struct {
		name, media, body string
		stream, fails     bool
	}{
		{"protobuf", apiruntime.ContentTypeProtobuf, proto, true, false},
		{"protobuf that breaks off", apiruntime.ContentTypeProtobuf, pods, true, true},
		{"the mark in a pod does not count", apiruntime.ContentTypeProtobuf, frame(endMark + strings.Repeat("p", 5000)), true, true},
		{"JSON", apiruntime.ContentTypeJSON, json, true, false},
		{"JSON that breaks off", apiruntime.ContentTypeJSON, json[:len(json)-30], true, true},
		{"a list ends with the body", apiruntime.ContentTypeJSON, json, false, false},
		{"a frame that is larger than any", apiruntime.ContentTypeProtobuf, frame(strings.Repeat("p", 300<<10)), true, true},
	} {
		for how, reader := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "in halves": iotest.HalfReader, "with the end": iotest.DataErrReader,
		} {
			t.Run(c.name+", "+how, func(t *testing.T) {
				n, err := drain(reader(bytes.NewBufferString(c.body)), c.stream, c.media)
				if (err != nil) != c.fails {
					t.Errorf("after %d bytes the error is %v", n, err)
				}
				if err == nil && n != int64(len(c.body)) {
					t.Errorf("it read %d of %d bytes", n, len(c.body))
				}
			})
		}
	}
}
