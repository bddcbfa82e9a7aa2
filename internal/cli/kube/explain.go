package kube

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// explained has a text for people, and wraps the error for errors.Is and errors.As.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// Explain returns an error that describes why the API server could not be reached, and what to do. The server's own answers
// about a resource are returned unchanged, except for refused credentials.
func (c *Cluster) Explain(err error) error {
	if err == nil {
		return nil
	}
	if text := c.meaning(err); text != "" {
		return &explained{text, err}
	}
	return err
}

// ExplainStart is Explain for discovery, which requests no resource: there, a refusal concerns the whole server.
func (c *Cluster) ExplainStart(err error) error {
	var (
		status apierrors.APIStatus
		syntax *json.SyntaxError
	)
	answered := errors.As(err, &status) && !apierrors.IsUnauthorized(err)
	switch {
	case answered && apierrors.IsForbidden(err):
		return &explained{fmt.Sprintf("context %q may not use the API server's discovery: ask for the role system:discovery", c.Name), err}
	case answered && (status.Status().Code >= http.StatusInternalServerError || apierrors.IsTooManyRequests(err)):
		return &explained{fmt.Sprintf("%s is not ready: %s; try again soon", c.server(), status.Status().Message), err}
	case answered && apierrors.IsBadRequest(err) && strings.HasPrefix(c.Config.Host, "http:"):
		return &explained{fmt.Sprintf("%s does not accept plain HTTP: does its address in the kubeconfig begin with https://?", c.server()), err}
	case answered, errors.As(err, &syntax):
		return &explained{fmt.Sprintf("the server at %s is not a Kubernetes API server: check the address of context %q in the kubeconfig", c.Config.Host, c.Name), err}
	}
	return c.Explain(err)
}

// Cause returns the innermost reason of a failed request, without the layers that repeat the address.
func Cause(err error) error {
	var (
		urlErr *url.Error
		op     *net.OpError
	)
	switch {
	case errors.As(err, &urlErr):
		return Cause(urlErr.Err)
	case errors.As(err, &op) && op.Err != nil:
		return Cause(op.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it closed the connection")
	case timedOut(err):
		return errors.New("it takes too long")
	}
	return err
}

func timedOut(err error) bool {
	var netErr net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout()
}

func (c *Cluster) server() string {
	return fmt.Sprintf("the API server of context %q at %s", c.Name, c.Config.Host)
}

// meaning returns the explanation of an error; empty if the error explains itself.
func (c *Cluster) meaning(err error) string {
	var (
		status      apierrors.APIStatus
		op          *net.OpError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		urlErr      *url.Error
	)
	if apierrors.IsUnauthorized(err) {
		return fmt.Sprintf("the API server refused the credentials of context %q: they may have expired; log in again%s", c.Name, c.plugin())
	}
	if errors.As(err, &status) {
		return ""
	}
	if cause := c.credentials(err); cause != "" {
		return fmt.Sprintf("cannot get the credentials of context %q: %s", c.Name, cause)
	}
	errors.As(err, &op)
	switch {
	case timedOut(err):
		return c.server() + " does not answer: is the address right, and a VPN or proxy needed?"
	case errors.As(err, &certificate):
		return fmt.Sprintf("cannot trust %s: %v; check its certificate-authority in the kubeconfig", c.server(), certificate.Err)
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return c.server() + " does not speak TLS: is the port right, or does its address begin with http://?"
	case op != nil && op.Op == "remote error": // crypto/tls's name for an alert from the peer
		return fmt.Sprintf("%s refused the TLS connection: %v; the client certificate may have expired: log in again", c.server(), op.Err)
	case errors.As(err, &urlErr) && c.proxy() != nil:
		return fmt.Sprintf("cannot reach %s through the proxy %s: %v; check proxy-url in the kubeconfig, HTTPS_PROXY and NO_PROXY",
			c.server(), c.proxy().Redacted(), Cause(err))
	case errors.As(err, &urlErr):
		return fmt.Sprintf("cannot reach %s: %v; is the address right, and the server up?", c.server(), Cause(err))
	}
	return ""
}

// credentials returns why a plugin could not get credentials, and what to do if that is known; empty for other errors.
// client-go has no type for them.
func (c *Cluster) credentials(err error) string {
	var urlErr, own *url.Error
	if !errors.As(err, &urlErr) {
		return ""
	}
	switch cause := urlErr.Err; {
	case c.Config.ExecProvider != nil:
		// This is the text of client-go's plugin/pkg/client/auth/exec.
		_, text, _ := strings.Cut(cause.Error(), "getting credentials: ")
		text, _, _ = strings.Cut(text, "\n")
		switch plugin := c.Config.ExecProvider; {
		case text == "":
			return ""
		case strings.HasSuffix(text, " not found"):
			text = fmt.Sprintf("the plugin %q was not found; install it, or add its directory to PATH", plugin.Command)
			if hint, _, _ := strings.Cut(strings.TrimSpace(plugin.InstallHint), "\n"); hint != "" {
				text += ". The kubeconfig says: " + hint
			}
			return text
		case strings.Contains(text, "failed with exit code"):
			return text + "; log in again" + c.plugin()
		}
		return text + c.plugin()
	case c.Config.AuthProvider == nil:
		return ""
	case errors.As(cause, &own): // a request of the provider
		return fmt.Sprintf("%s: %v", own.URL, Cause(own.Err))
	case strings.Contains(cause.Error(), "token"): // the errors of client-go's plugin/pkg/client/auth/oidc have nothing else in common
		return cause.Error() + "; log in again"
	}
	return ""
}

// plugin names the command that provides the credentials, if the kubeconfig has one.
func (c *Cluster) plugin() string {
	if c.Config.ExecProvider == nil {
		return ""
	}
	return fmt.Sprintf(" (they come from %q)", c.Config.ExecProvider.Command)
}

// proxy returns the proxy for the server; nil if there is none.
func (c *Cluster) proxy() *url.URL {
	choose := c.Config.Proxy
	if choose == nil {
		choose = http.ProxyFromEnvironment
	}
	r, err := http.NewRequest(http.MethodGet, c.Config.Host, http.NoBody)
	if err != nil {
		return nil
	}
	u, err := choose(r)
	if err != nil {
		return nil
	}
	return u
}
