package capture

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Transient reports whether an error of a request, or of a watcher that cannot start, may pass without a change of the
// configuration or the rights: the API server is away, is starting, or is overloaded. Refused credentials, wrong addresses and
// certificates, and types that the server does not have are not transient.
func Transient(err error) bool {
	var (
		status  apierrors.APIStatus
		unknown *UnknownTypeError
		name    *net.DNSError
		op      *net.OpError
		timeout net.Error
	)
	switch {
	case errors.As(err, &unknown): // of a group that did not answer, as while an aggregated API starts
		_, group, _ := strings.Cut(strings.ToLower(unknown.Type), ".")
		return slices.Contains(unknown.Failed, group)
	case errors.As(err, &status):
		return status.Status().Code >= http.StatusInternalServerError || apierrors.IsTooManyRequests(err)
	case errors.As(err, &name) && name.IsNotFound:
		return false
	case errors.As(err, &op):
		return op.Op != "remote error" // crypto/tls's name for an alert from the peer, such as about a certificate
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case errors.As(err, &timeout) && timeout.Timeout():
		return true
	}
	return err != nil && strings.Contains(err.Error(), "http2: ") // net/http has no type for a connection that is lost, or ends
}
