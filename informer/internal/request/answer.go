package request

import (
	"net/http"
	"strings"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Uncompress makes a compressed answer to a request of others a plain one: each part of a stream comes as
// soon as the server has sent it.
func Uncompress(resp *http.Response) {
	if !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return
	}
	resp.Body = unzip(resp.Body)
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
}

// FormatOf tells what an answer is in, by its Content-Type; 0 is something else than we read.
func FormatOf(resp *http.Response) wire.Format { return formatOf(resp.Header.Get("Content-Type")) }
