package otlp

import (
	"encoding/base64"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// headers returns the headers of each request by lower-case name, including the user's authorization.
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

// newMask masks the credentials of the options: a receiver may echo them.
func newMask(o Options) *sink.Mask {
	b := &sink.Mask{}
	for _, value := range o.Headers {
		b.Add(sink.MinSecret, value)
		b.Add(sink.MinWord, strings.Fields(value)...) // Bearer and its token
	}
	b.AddProxies() // gRPC quotes an invalid one, too
	if u, err := parseEndpoint(o.Endpoint, HTTP); err == nil {
		b.AddUser(u.User)
		b.Add(sink.MinWord, u.User.Username(), u.RawQuery)
		if path := strings.Trim(u.Path, "/"); path != strings.Trim(logsPath, "/") {
			b.Add(sink.MinWord, strings.Split(path, "/")...) // some receivers identify us by a path
		}
		for _, values := range u.Query() {
			b.Add(sink.MinSecret, values...)
		}
	}
	return b
}
