package otlp

import (
	"encoding/base64"
	"os"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// headers are those of each request, by their names in small letters, the user's included.
func headers(s *Sink) map[string]string {
	out := map[string]string{}
	for name, value := range s.o.Headers {
		out[strings.ToLower(name)] = value
	}
	if u := s.url.User; u != nil {
		password, _ := u.Password()
		out["authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password))
	}
	return out
}

// blotter knows the credentials of the options: a receiver may send back what it got.
func blotter(o Options) *sink.Blot {
	b := &sink.Blot{}
	for _, value := range o.Headers {
		b.Add(sink.LeastPassword, value)
		b.Add(sink.LeastWord, strings.Fields(value)...) // Bearer and its token
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		b.Add(sink.LeastPassword, os.Getenv(name)) // both clients quote it where it is wrong
	}
	if u, err := parseEndpoint(o.Endpoint, HTTP); err == nil {
		b.AddUser(u.User)
		b.Add(sink.LeastWord, u.User.Username(), u.RawQuery)
		if path := strings.Trim(u.Path, "/"); path != strings.Trim(logsPath, "/") {
			b.Add(sink.LeastWord, strings.Split(path, "/")...) // some receivers know us by a path
		}
		for _, values := range u.Query() {
			b.Add(sink.LeastPassword, values...)
		}
	}
	return b
}
