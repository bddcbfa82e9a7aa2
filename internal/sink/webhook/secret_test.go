package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// TestSignature verifies the signature from the receiver's side.
func TestSignature(t *testing.T) {
	for _, tc := range []struct {
		why, secret string
		key         []byte
	}{
		{"a coded secret", "whsec_c2VjcmV0IGtleQ==", []byte("secret key")},
		{"a plain one", "secret key", []byte("secret key")},
	} {
		var h http.Header
		var body []byte
		s := serve(t, Options{Secret: tc.secret}, func(_ http.ResponseWriter, r *http.Request) {
			h = r.Header
			body, _ = io.ReadAll(r.Body)
		})
		m := sinktest.Messages(0, 1)
		if _, err := s.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		stamp, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
		if age := time.Since(time.Unix(stamp, 0)); err != nil || age < -time.Second || age > time.Minute {
			t.Errorf("%s: timestamp %q", tc.why, h.Get("webhook-timestamp"))
		}
		mac := hmac.New(sha256.New, tc.key)
		fmt.Fprintf(mac, "%s.%d.%s", m[0].ID, stamp, body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if h.Get("webhook-signature") != want || h.Get("webhook-id") != m[0].ID {
			t.Errorf("%s: %s of %s, want %s", tc.why, h.Get("webhook-signature"), h.Get("webhook-id"), want)
		}
	}
}

// TestSignatureOfTheStandard checks the example of the Standard Webhooks specification.
func TestSignatureOfTheStandard(t *testing.T) {
	k, err := key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	sign(h, k, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got, want := h.Get("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNoCredentialIsShown: a receiver that echoes the request, errors of every kind, and the checks of the options
// show no credential.
func TestNoCredentialIsShown(t *testing.T) {
	const canary = "Xk9qLw7zPvB3nM5t"
	secrets := map[string]string{
		"password": "pw-" + canary + `"&@`, "query": "qu-" + canary, "path": "pa-" + canary, "header": "he-" + canary,
		"secret": "se-" + canary, "template": "te-" + canary,
	}
	o := Options{
		Secret:   secrets["secret"],
		Headers:  map[string]string{"Authorization": "Bearer " + secrets["header"], "X-Key": secrets["header"] + `"quoted"`},
		Template: `{"routing_key": "` + secrets["template"] + `", "id": {{json .ID}}}`,
	}
	quit := make(chan struct{})
	defer close(quit)
	with := func(base string) string {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("user", secrets["password"])
		u.Path, u.RawQuery = "/hooks/"+secrets["path"], "token="+secrets["query"]
		return u.String()
	}
	echo := func(code int, hang bool) *Sink {
		s := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if hang {
				select {
				case <-quit:
				case <-r.Context().Done():
				}
				return
			}
			user, password, _ := r.BasicAuth()
			w.Header().Set("Location", r.URL.String())
			w.WriteHeader(code)
			fmt.Fprintf(w, "%s %q %s %s %v %s ", user, password, password, r.URL, r.Header, body)
		})
		o.URL, o.Timeout = with(s.o.URL), long
		if hang {
			o.Timeout = 200 * time.Millisecond
		}
		return newSink(t, o)
	}
	check := func(why, text string) {
		t.Helper()
		if strings.Contains(text, canary) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("user:"+secrets["password"]))) {
			t.Errorf("%s shows a credential: %s", why, text)
		}
	}
	for why, s := range map[string]*Sink{
		"a refusal": echo(400, false), "a failure": echo(500, false), "a redirect": echo(302, false), "silence": echo(200, true),
	} {
		_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		if err == nil {
			t.Fatalf("%s: no error", why)
		}
		check(why, err.Error())
		check(why, s.String())
		if why == "a refusal" && !strings.Contains(err.Error(), "***") {
			t.Errorf("the answer is not shown: %v", err)
		}
	}
	noNames(t)
	o.URL, o.Insecure, o.Timeout = with("http://tattler.invalid:99"), true, long
	_, err := newSink(t, o).Send(t.Context(), sinktest.Messages(0, 1))
	check("an unknown host", fmt.Sprint(err))

	for why, bad := range map[string]Options{
		"a broken URL":          {URL: "https://user:" + canary + "%zz@host/"},
		"a URL with a bad port": {URL: "https://user@host:" + canary},
		"no scheme":             {URL: canary},
		"another scheme":        {URL: "ftp://user:" + canary + "@host"},
		"a header's value":      {URL: "http://host", Headers: map[string]string{"A": canary + "\n"}},
		"a secret":              {URL: "http://host", Secret: "whsec_" + canary + "!"},
	} {
		_, err := New("tattler/test", bad)
		if err == nil {
			t.Errorf("%s is right", why)
			continue
		}
		check(why, err.Error())
	}
}
