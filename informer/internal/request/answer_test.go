package request

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// TestUncompress: each part of a response is readable as soon as it arrives, and the headers no longer mention
// compression.
func TestUncompress(t *testing.T) {
	more, server := io.Pipe()
	resp := &http.Response{
		Header:        http.Header{"Content-Encoding": {"gzip"}, "Content-Length": {"99"}, "Content-Type": {"application/json; charset=utf-8"}},
		Body:          io.NopCloser(io.MultiReader(bytes.NewReader(zip(t, "one")), more)),
		ContentLength: 99,
	}
	Uncompress(resp)
	if resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Content-Length") != "" || resp.ContentLength != -1 {
		t.Errorf("headers still say %v, %d", resp.Header, resp.ContentLength)
	}
	first := make([]byte, 3)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "one" { // the server has sent only this part
		t.Errorf("read %q, %v", first, err)
	}
	second := zip(t, "two")
	go func() {
		_, err := server.Write(second)
		_ = server.CloseWithError(err)
	}()
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "two" {
		t.Errorf("read %q, %v", rest, err)
	}
	plain := &http.Response{Header: http.Header{}, Body: http.NoBody, ContentLength: 0}
	if Uncompress(plain); plain.Body != http.NoBody || plain.Uncompressed {
		t.Error("a response without compression was changed")
	}
	for _, tc := range []struct {
		header string
		want   wire.Format
	}{
		{"application/json; charset=utf-8", wire.JSON}, {"application/vnd.kubernetes.protobuf;stream=watch", wire.Protobuf},
		{"", wire.JSON}, {"text/html", 0}, {"application/cbor", 0},
	} {
		resp.Header.Set("Content-Type", tc.header)
		if got := FormatOf(resp); got != tc.want {
			t.Errorf("%q is %v, want %v", tc.header, got, tc.want)
		}
	}
}
