package sink

import (
	"fmt"
	"strings"
	"testing"
)

func TestScheme(t *testing.T) {
	s := Scheme{Plain: "p", Secure: "ps", PlainPort: "1", SecurePort: "2", Example: "p://h"}
	for _, tc := range []struct {
		why, url string
		tls      TLS
		insecure bool
		want     string
	}{
		{"the default port", "p://h", TLS{}, false, "h:1 false"},
		{"the default port with TLS", "ps://h/path", TLS{}, false, "h:2 true"},
		{"an IPv6 address with a port", "p://[::1]:7", TLS{}, false, "[::1]:7 false"},
		{"nothing", "", TLS{}, false, "missing; an example is p://h"},
		{"another scheme", "http://hunter2@h", TLS{}, false, "must begin with ps:// or p:// and a host"},
		{"a port that is too large", "p://h:65536", TLS{}, false, "the port must be a number from 1 to 65535"},
		{"a port that cannot be connected to", "p://h:0", TLS{}, false, "the port must be a number"},
		{"the last port", "p://h:65535", TLS{}, false, "h:65535 false"},
		{"an empty port", "p://h:", TLS{}, false, "h:1 false"},
		{"no host", "p://:7", TLS{}, false, "must begin with"},
		{"not a URL", "p://u:hunter2%zz@h", TLS{}, false, "not a URL"},
		{"TLS options without TLS", "p://h", TLS{CA: "a"}, false, "tls: the url does not begin with ps://"},
		{"TLS options that are invalid", "ps://h", TLS{Cert: "a"}, false, "tls: cert and key"},
		{"a password with TLS", "ps://u:hunter2@h", TLS{}, false, "h:2 true"},
		{"a password in clear text", "p://u:hunter2@h", TLS{}, false, "url: the password would be sent to h in clear text: use ps://"},
		{"a password that may be sent so", "p://u:hunter2@h", TLS{}, true, "h:1 false"},
		{"a password for this machine", "p://u:hunter2@localhost", TLS{}, false, "localhost:1 false"},
	} {
		a, err := s.Parse(tc.url)
		if err == nil {
			err = s.Check(a, tc.tls, tc.insecure)
		}
		got := fmt.Sprint(a.HostPort, " ", a.Secure)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tc.want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
		}
	}
	if _, err := (Scheme{Plain: "p", Secure: "ps"}).Parse(""); err == nil || err.Error() != "missing" {
		t.Errorf("without an example: %v", err)
	}
}
