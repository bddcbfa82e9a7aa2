// Package incluster reaches the daemon that runs in a cluster, and opens the journal that it serves.
//
// The connection is a port-forward of the API server to the daemon's pod, with TLS from end to end within it: the viewer
// proves to the daemon who they are, and neither the API server nor the kubelet can read or change what they say.
//
// A viewer's own bearer token is sent only with SendToken, because whoever receives it can use it against the cluster.
// docs/security.md compares the ways.
package incluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/web/client"
)

// Options say which daemon, and how the viewer proves to it who they are: by the client certificate of the kubeconfig,
// if it has one, and by at most one of Account and SendToken.
type Options struct {
	// Config reaches the API server as the viewer.
	Config *rest.Config
	// Service is NAMESPACE/NAME of the daemon's Service; empty: the only one that is labelled as Tattler's. It must be
	// named where a token is sent.
	Service string
	// Account is NAMESPACE/NAME of a ServiceAccount: the viewer sees what it may see. The API server issues a token for
	// it that only the daemon accepts, for ten minutes.
	Account string
	// SendToken sends the viewer's own token, with which the daemon can act as the viewer until it expires.
	SendToken bool
	// CA is a PEM file of the CA of the daemon's certificate; empty: the ConfigMap NAME-ca beside the Service.
	CA string

	// Dial connects to a port of a pod; nil is a port-forward.
	Dial func(ctx context.Context, namespace, pod string, port int) (net.Conn, error)
}

// Audience is what the tokens of accounts are for. The daemon must accept it: web.audiences in its configuration.
const Audience = "tattler"

// Open finds the daemon and opens its journal.
func Open(ctx context.Context, o Options) (*client.Journal, error) {
	switch {
	case o.Account != "" && o.SendToken:
		return nil, usage.Errorf("--daemon-account and --send-token exclude each other")
	case (o.Account != "" || o.SendToken) && o.Service == "":
		return nil, usage.Errorf("name the daemon that receives a token: --in-cluster=NAMESPACE/NAME of its Service; anyone could label another one")
	case o.Config.Impersonate.UserName != "":
		return nil, usage.Errorf("--as does not reach a daemon in the cluster: it sees who you are; --daemon-account shows what a ServiceAccount may see")
	}
	api, err := newServer(o.Config)
	if err != nil {
		return nil, err
	}
	t, err := api.find(ctx, o.Service)
	if err != nil {
		return nil, err
	}
	identity, err := o.identity(ctx, api, t)
	if err != nil {
		return nil, err
	}
	dial, closing := o.dialer(api, t)
	base := &http.Transport{
		DialContext: dial, TLSClientConfig: identity.tls, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 15 * time.Second, ResponseHeaderTimeout: 2 * time.Minute, MaxIdleConnsPerHost: 4,
	}
	hc := &http.Client{
		Transport:     identity.wrap(base),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a credential goes nowhere else
	}
	j, err := client.Open(ctx, client.Options{URL: "https://" + t.host(), Client: hc, Close: closing})
	if err != nil {
		base.CloseIdleConnections()
		return nil, errors.Join(fmt.Errorf("%w%s", err, identity.hint(err)), closing())
	}
	return j, nil
}

// dialer returns what connects to the daemon, whatever the address, and how to close it.
func (o *Options) dialer(api *server, t *target) (dial func(ctx context.Context, network, addr string) (net.Conn, error), closing func() error) {
	if o.Dial != nil {
		return func(ctx context.Context, _, _ string) (net.Conn, error) {
			return o.Dial(ctx, t.namespace, t.pod, t.port)
		}, func() error { return nil }
	}
	f := api.forward(t.namespace, t.pod, t.port)
	return f.dial, f.Close
}

// identity is how the viewer proves to the daemon who they are.
type identity struct {
	tls    *tls.Config
	tokens func(http.RoundTripper) http.RoundTripper // nil: none
}

func (i *identity) wrap(rt http.RoundTripper) http.RoundTripper {
	if i.tokens == nil {
		return rt
	}
	return i.tokens(rt)
}

// hint says what to do where the daemon does not accept the viewer.
func (i *identity) hint(err error) string {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return ": the CA in the ConfigMap or in --daemon-ca did not sign the daemon's certificate"
	case errors.As(err, &host):
		return ": the daemon's certificate must name its Service"
	case i.tokens == nil:
		return "; the daemon was shown the client certificate of your kubeconfig, if it has one: without one, say --daemon-account"
	}
	return ""
}

// identity prepares the viewer's credentials. Nothing is sent before the daemon's certificate was verified.
func (o *Options) identity(ctx context.Context, api *server, t *target) (*identity, error) {
	roots, err := o.roots(ctx, api, t)
	if err != nil {
		return nil, err
	}
	own, err := o.Config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("read the credentials of the kubeconfig: %w", err)
	}
	id := &identity{tls: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: t.host()}}
	cert, err := transport.TLSConfigFor(own)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate of the kubeconfig: %w", err)
	}
	if cert != nil {
		id.tls.Certificates, id.tls.GetClientCertificate = cert.Certificates, cert.GetClientCertificate
	}
	switch {
	case o.Account != "":
		tokens, err := newAccount(api, o.Account)
		if err != nil {
			return nil, err
		}
		id.tls.Certificates, id.tls.GetClientCertificate = nil, nil // the account instead
		id.tokens = tokens.wrap
	case o.SendToken:
		if _, err := transport.HTTPWrappersForConfig(own, http.DefaultTransport); err != nil {
			return nil, fmt.Errorf("read the token of the kubeconfig: %w", err)
		}
		id.tokens = func(rt http.RoundTripper) http.RoundTripper {
			wrapped, err := transport.HTTPWrappersForConfig(own, rt)
			if err != nil {
				return failing{err}
			}
			return wrapped
		}
	case cert == nil || len(cert.Certificates) == 0 && cert.GetClientCertificate == nil:
		return nil, usage.Errorf("your kubeconfig has no client certificate, and a token is not sent to the daemon, which could use it: " +
			"say --daemon-account NAMESPACE/NAME of a ServiceAccount, or --send-token if you trust the daemon with your rights")
	}
	return id, nil
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// roots returns the CA of the daemon's certificate.
func (o *Options) roots(ctx context.Context, api *server, t *target) (*x509.CertPool, error) {
	var pem []byte
	var from string
	if o.CA != "" {
		b, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("read --daemon-ca: %w", err)
		}
		pem, from = b, o.CA
	} else {
		text, err := api.configMap(ctx, t.namespace, t.service+"-ca", "ca.crt")
		if err != nil {
			return nil, fmt.Errorf("find the CA of the daemon's certificate: %w; --daemon-ca names a file", err)
		}
		pem, from = []byte(text), "ConfigMap "+t.namespace+"/"+t.service+"-ca"
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", from)
	}
	return roots, nil
}

// split reads NAMESPACE/NAME.
func split(text, flag string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", usage.Errorf("%s: %q is not NAMESPACE/NAME", flag, text)
	}
	return namespace, name, nil
}
