package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// sign adds the headers of Standard Webhooks 1.0.
func sign(h http.Header, key []byte, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// leastToken is how long what may be a key in the text of a template is at least.
const leastToken = 16

// token is what may be a key in the text of a template.
var token = regexp.MustCompile(`[A-Za-z0-9_.+/=-]+`)

// blotter knows the credentials of the options: a receiver may send back what it got.
func blotter(o Options) *sink.Blot {
	b := &sink.Blot{}
	b.Add(sink.LeastPassword, o.Secret, strings.TrimPrefix(o.Secret, "whsec_"))
	for _, value := range o.Headers {
		b.Add(sink.LeastPassword, value)
		b.Add(sink.LeastWord, strings.Fields(value)...) // Bearer and its token
	}
	b.Add(leastToken, token.FindAllString(o.Template, -1)...)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		b.Add(sink.LeastPassword, os.Getenv(name)) // net/http quotes it where it is wrong
	}
	if u, err := parseURL(o.URL); err == nil {
		b.AddUser(u.User)
		b.Add(sink.LeastWord, u.User.Username())
		b.Add(sink.LeastWord, u.RequestURI(), u.RawQuery) // many receivers know us by a path or a query
		b.Add(sink.LeastWord, strings.Split(u.Path, "/")...)
		b.Add(sink.LeastWord, strings.Split(u.EscapedPath(), "/")...)
		for _, values := range u.Query() {
			b.Add(sink.LeastPassword, values...)
		}
	}
	return b
}
