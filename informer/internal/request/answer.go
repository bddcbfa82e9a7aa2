package request

import (
	"net/http"
	"strings"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Uncompress replaces the body of a compressed response by its uncompressed content. Each part of a stream is
// available as soon as the server has sent it.
func Uncompress(resp *http.Response) {
	if !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return
	}
	resp.Body = unzip(resp.Body)
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
}

// FormatOf returns the format of a response by its Content-Type; 0 if it is not JSON or protobuf.
func FormatOf(resp *http.Response) wire.Format { return formatOf(resp.Header.Get("Content-Type")) }
