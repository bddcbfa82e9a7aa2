package capture

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestTransient: what passes by itself, and what needs somebody.
func TestTransient(t *testing.T) {
	request := func(err error) error {
		return fmt.Errorf("discover: %w", &url.Error{Op: "Get", URL: "https://h/api", Err: err})
	}
	gr := schema.GroupResource{Resource: "pods"}
	for why, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                       {nil, false},
		"it is down":                     {request(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}), true},
		"it resets connections":          {request(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}), true},
		"it closes them":                 {request(io.EOF), true},
		"it ends HTTP/2":                 {request(errors.New("http2: server sent GOAWAY and closed the connection")), true},
		"it does not answer":             {request(context.DeadlineExceeded), true},
		"names are not resolved now":     {request(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}), true},
		"there is no such name":          {request(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}), false},
		"its certificate is not trusted": {request(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), false},
		"it refuses the certificate":     {request(&net.OpError{Op: "remote error", Err: errors.New("tls: expired certificate")}), false},
		"no credentials":                 {request(errors.New("getting credentials: exec: executable x failed with exit code 1")), false},
		"refused credentials":            {apierrors.NewUnauthorized("no"), false},
		"no right":                       {apierrors.NewForbidden(gr, "", nil), false},
		"no API server":                  {apierrors.NewNotFound(gr, "x"), false},
		"it is starting":                 {fmt.Errorf("discover: %w", apierrors.NewServiceUnavailable("starting")), true},
		"it is overloaded":               {apierrors.NewTooManyRequests("later", 1), true},
		"it fails":                       {apierrors.NewInternalError(errors.New("etcd")), true},
		"an unknown type":                {&UnknownTypeError{Type: "podz"}, false},
		"one of a group that answers":    {&UnknownTypeError{Type: "podz.apps", Failed: []string{"metrics.k8s.io"}}, false},
		"one of a group that does not":   {&UnknownTypeError{Type: "Pods.metrics.k8s.io", Failed: []string{"metrics.k8s.io"}}, true},
		"nothing to watch":               {errNothing, false},
	} {
		if got := Transient(tc.err); got != tc.want {
			t.Errorf("%s: %t", why, got)
		}
	}
}
