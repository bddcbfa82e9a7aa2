package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
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

// minToken is the minimum length of a word in a template that may be a key.
const minToken = 16

// token matches words of a template that may be a key.
var token = regexp.MustCompile(`[A-Za-z0-9_.+/=-]+`)

// newMask masks the credentials of the options: a receiver may echo them.
func newMask(o Options) *sink.Mask {
	b := &sink.Mask{}
	b.Add(sink.MinSecret, o.Secret, strings.TrimPrefix(o.Secret, "whsec_"))
	for _, value := range o.Headers {
		b.Add(sink.MinSecret, value)
		b.Add(sink.MinWord, strings.Fields(value)...) // Bearer and its token
	}
	b.Add(minToken, token.FindAllString(o.Template, -1)...)
	b.AddProxies()
	if u, err := parseURL(o.URL); err == nil {
		b.AddUser(u.User)
		b.Add(sink.MinWord, u.User.Username())
		b.Add(sink.MinWord, u.RequestURI(), u.RawQuery) // many receivers identify us by the path or the query
		b.Add(sink.MinWord, strings.Split(u.Path, "/")...)
		b.Add(sink.MinWord, strings.Split(u.EscapedPath(), "/")...)
		for _, values := range u.Query() {
			b.Add(sink.MinSecret, values...)
		}
	}
	return b
}
