package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ask sends one request like the engine and returns its explained error, with HOST for the address.
func ask(t *testing.T, c *rest.Config) string {
	t.Helper()
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Host+"/api", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err == nil {
		resp.Body.Close()
		t.Fatalf("answered %s", resp.Status)
	}
	got := (&Cluster{Config: c, Name: "prod"}).Explain(fmt.Errorf("ask: %w", err))
	if !errors.Is(got, err) {
		t.Error("the error itself is lost")
	}
	return strings.ReplaceAll(got.Error(), c.Host, "HOST")
}

// quiet makes a server that does not log its clients' errors.
func quiet(s *httptest.Server) *httptest.Server {
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	return s
}

// hangUp closes each connection at once.
func hangUp(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

func exec(command string, args ...string) *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{
		Command: command, Args: args,
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
}

func TestExplainConnections(t *testing.T) {
	alone(t)
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	plain := quiet(httptest.NewServer(answer))
	defer plain.Close()
	secure := quiet(httptest.NewUnstartedServer(answer))
	secure.StartTLS()
	defer secure.Close()
	strict := quiet(httptest.NewUnstartedServer(answer))
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12} // with 1.3 the refusal comes later
	strict.StartTLS()
	defer strict.Close()
	refusing := quiet(httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })))
	defer refusing.Close()
	loop := quiet(httptest.NewServer(http.RedirectHandler("/login", http.StatusFound)))
	defer loop.Close()
	through := func(proxy string) func(*http.Request) (*url.URL, error) {
		u, err := url.Parse(proxy)
		if err != nil {
			t.Fatal(err)
		}
		return http.ProxyURL(u)
	}
	insecure := rest.TLSClientConfig{Insecure: true}
	const unreachable = `cannot reach the API server of context "prod" at HOST`

	for _, tt := range []struct {
		why    string
		config *rest.Config
		want   string
	}{
		{"connection refused", &rest.Config{Host: "https://127.0.0.1:1"}, unreachable + ": connect: connection refused; is the address right"},
		{"a load balancer without a server", &rest.Config{Host: hangUp(t)}, unreachable + ": "},
		{"redirects, such as to a login page", &rest.Config{Host: loop.URL}, unreachable + ": stopped after 10 redirects"},
		{"a certificate of another cluster", &rest.Config{Host: secure.URL},
			`cannot trust the API server of context "prod" at HOST: x509: certificate signed by unknown authority; check its certificate-authority`},
		{"https:// where http:// is spoken", &rest.Config{Host: strings.Replace(plain.URL, "http:", "https:", 1)},
			`the API server of context "prod" at HOST does not speak TLS: is the port right`},
		{"a client certificate that is refused, or missing", &rest.Config{Host: strict.URL, TLSClientConfig: insecure},
			`the API server of context "prod" at HOST refused the TLS connection: tls: `},
		{"a proxy that is down", &rest.Config{Host: secure.URL, Proxy: through("http://user:secret@127.0.0.1:1")},
			unreachable + " through the proxy http://user:xxxxx@127.0.0.1:1: connect: connection refused; check proxy-url"},
		{"a proxy that refuses", &rest.Config{Host: secure.URL, Proxy: through(refusing.URL)},
			unreachable + " through the proxy " + refusing.URL + ": Forbidden; check proxy-url"},
		{"a plugin that fails", &rest.Config{Host: secure.URL, TLSClientConfig: insecure, ExecProvider: exec("false")},
			`cannot get the credentials of context "prod": exec: executable false failed with exit code 1; log in again (they come from "false")`},
		{"a plugin that is not installed", &rest.Config{Host: secure.URL, TLSClientConfig: insecure, ExecProvider: exec("tattler-no-such-plugin")},
			`cannot get the credentials of context "prod": the plugin "tattler-no-such-plugin" was not found; install it, or add its directory to PATH`},
		{"a plugin that says something else", &rest.Config{Host: secure.URL, TLSClientConfig: insecure, ExecProvider: exec("echo", "hello")},
			`cannot get the credentials of context "prod": decoding stdout: `}, // logging in may not help
		{"a plugin is not to blame for the server", &rest.Config{Host: "https://127.0.0.1:1", ExecProvider: exec("echo",
			`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"x"}}`)}, unreachable + ": connect: "},
		{"OIDC without a refresh token", &rest.Config{Host: secure.URL, TLSClientConfig: insecure, AuthProvider: oidc(secure.URL, "")},
			`cannot get the credentials of context "prod": No valid id-token, and cannot refresh without refresh-token; log in again`},
		{"an OIDC issuer that is down", &rest.Config{Host: secure.URL, TLSClientConfig: insecure, AuthProvider: oidc("https://127.0.0.1:1", "r")},
			`cannot get the credentials of context "prod": https://127.0.0.1:1/.well-known/openid-configuration: connect: connection refused`},
	} {
		t.Run(tt.why, func(t *testing.T) {
			if got := ask(t, tt.config); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func oidc(issuer, refresh string) *clientcmdapi.AuthProviderConfig {
	return &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{
		"client-id": "tattler", "idp-issuer-url": issuer, "refresh-token": refresh,
	}}
}

func TestExplainErrors(t *testing.T) {
	alone(t)
	c := &Cluster{Config: &rest.Config{Host: "https://h"}, Name: "prod"}
	plain := &Cluster{Config: &rest.Config{Host: "http://h"}, Name: "prod"}
	answer := func(code int) error {
		return fmt.Errorf("ask: %w", apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{}, "", "", 0, true))
	}
	syntax := json.Unmarshal([]byte("<html>"), &struct{}{})
	const foreign = `the server at https://h is not a Kubernetes API server: check the address of context "prod"`
	for _, tt := range []struct {
		why       string
		cluster   *Cluster
		err       error
		any, disc string // what Explain and ExplainStart say; empty: the error itself
	}{
		{"401", c, answer(401), `the API server refused the credentials of context "prod": they may have expired; log in again`, "="},
		{"403 names what is forbidden", c, answer(403), "", `context "prod" may not use the API server's discovery: ask for the role system:discovery`},
		{"404", c, answer(404), "", foreign},
		{"400 in the clear", plain, answer(400), "", `the API server of context "prod" at http://h does not accept plain HTTP`},
		{"400 else", c, answer(400), "", foreign},
		{"429", c, answer(429), "", `the API server of context "prod" at https://h is not ready: `},
		{"503", c, answer(503), "", `the API server of context "prod" at https://h is not ready: the server is currently unable to handle the request; try again`},
		{"a page", c, fmt.Errorf("ask: %w", syntax), "", foreign},
		{"no answer in time", c, fmt.Errorf("ask: %w", context.DeadlineExceeded), `the API server of context "prod" at https://h does not answer: `, "="},
		{"an expired certificate", c, &url.Error{Op: "Get", URL: "https://h/api", Err: &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}},
			`cannot trust the API server of context "prod" at https://h: x509: certificate has expired`, "="},
		{"another error", c, errors.New("strange"), "", ""},
	} {
		t.Run(tt.why, func(t *testing.T) {
			if tt.disc == "=" {
				tt.disc = tt.any
			}
			for _, p := range []struct {
				name, got, want string
			}{
				{"Explain", tt.cluster.Explain(tt.err).Error(), tt.any},
				{"ExplainStart", tt.cluster.ExplainStart(tt.err).Error(), tt.disc},
			} {
				if p.want == "" {
					p.want = tt.err.Error()
				}
				if !strings.HasPrefix(p.got, p.want) {
					t.Errorf("%s\ngot  %s\nwant %s", p.name, p.got, p.want)
				}
			}
		})
	}
	if c.Explain(nil) != nil || c.ExplainStart(nil) != nil {
		t.Error("no error became one")
	}
}

func TestCause(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connect: connection refused")}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&url.Error{Op: "Get", URL: "https://h", Err: dial}, "connect: connection refused"},
		{fmt.Errorf("ask: %w", io.ErrUnexpectedEOF), "it closed the connection"},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), "it takes too long"},
		{answer503, answer503.Error()},
	} {
		if got := Cause(tt.err).Error(); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.err, got, tt.want)
		}
	}
}

var answer503 = apierrors.NewServiceUnavailable("shutting down")
