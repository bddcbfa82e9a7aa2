package webhook

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
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

// blotted is an error with another text.
type blotted struct {
	err  error
	text string
}

func (b blotted) Error() string { return b.text }

func (b blotted) Unwrap() error { return b.err }

// Shorter words are no secrets, and found everywhere.
const (
	leastSecret = 4
	leastWord   = 8 // of a path, or of a header's value
	leastToken  = 16
)

// token is what may be a key in the text of a template.
var token = regexp.MustCompile(`[A-Za-z0-9_.+/=-]+`)

// blotter replaces the credentials of the options: a receiver may send back what it got.
func blotter(o Options) *strings.Replacer {
	var secrets []string
	add := func(least int, texts ...string) {
		for _, s := range texts {
			if len(s) >= least {
				secrets = append(secrets, s, quoted(s))
			}
		}
	}
	add(leastSecret, o.Secret, strings.TrimPrefix(o.Secret, "whsec_"))
	for _, value := range o.Headers {
		add(leastSecret, value)
		add(leastWord, strings.Fields(value)...) // Bearer and its token
	}
	add(leastToken, token.FindAllString(o.Template, -1)...)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		add(leastSecret, os.Getenv(name)) // net/http quotes it where it is wrong
	}
	if u, err := parseURL(o.URL); err == nil {
		if password, ok := u.User.Password(); ok {
			_, escaped, _ := strings.Cut(u.User.String(), ":")
			add(1, password, escaped, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		}
		add(leastWord, u.User.Username())
		add(leastWord, u.RequestURI(), u.RawQuery) // many receivers know us by a path or a query
		add(leastWord, strings.Split(u.Path, "/")...)
		add(leastWord, strings.Split(u.EscapedPath(), "/")...)
		for _, values := range u.Query() {
			add(leastSecret, values...)
		}
	}
	// The longest first: of two that begin alike, the replacer takes the one that comes first.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, "***")
	}
	return strings.NewReplacer(pairs...)
}

// quoted is s as JSON and Go write it within quotes.
func quoted(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// excerpt is the beginning of an answer, on one line, without credentials.
func (s *Sink) excerpt(text []byte) string {
	const most = 200
	line := strings.Join(strings.FieldsFunc(s.blot.Replace(string(text)), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
