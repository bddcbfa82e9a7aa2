package reflector

import (
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

func TestClassify(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	code := func(c int32) error { return &apierrors.StatusError{ErrStatus: metav1.Status{Code: c}} }
	for _, c := range []struct {
		name        string
		err         error
		want        Event
		unreachable bool
		after       time.Duration
	}{
		{"a connection that breaks", io.ErrUnexpectedEOF, Failed, true, 0},
		{"a refused connection, wrapped", fmt.Errorf("ask: %w", errors.New("refused")), Failed, true, 0},
		{"a list that is not JSON: a server answered", &wire.SyntaxError{}, Failed, false, 0},
		{"forbidden", apierrors.NewForbidden(pods, "", nil), Refused, false, 0},
		{"unauthorized, wrapped", fmt.Errorf("ask: %w", apierrors.NewUnauthorized("")), Unauthorized, false, 0},
		{"a selector that the server does not know", apierrors.NewBadRequest(""), Refused, false, 0},
		{"a kind that cannot be listed", apierrors.NewMethodNotSupported(pods, "list"), Refused, false, 0},
		{"not found", apierrors.NewNotFound(pods, ""), Missing, false, 0},
		{"not found, from something that is not an API server", apierrors.NewGenericServerResponse(404, "get", pods, "", "<html>", 0, true), Failed, false, 0},
		{"not found, from an API server without a Status", apierrors.NewGenericServerResponse(404, "get", pods, "", "404 page not found", 0, false), Missing, false, 0},
		{"gone", apierrors.NewResourceExpired(""), Expired, false, 0},
		{"gone, in the words of old servers", code(410), Expired, false, 0},
		{"too many requests", apierrors.NewTooManyRequests("", 3), Failed, false, 3 * time.Second},
		{"a delay of 68 years", apierrors.NewTooManyRequests("", math.MaxInt32), Failed, false, time.Hour},
		{"an invalid list", fmt.Errorf("list: %w", errNoVersion), Failed, false, 0},
		{"an internal error", apierrors.NewInternalError(errors.New("x")), Failed, false, 0},
		{"unavailable", apierrors.NewServiceUnavailable(""), Failed, false, 0},
		{"a version too large, a temporary failure", apierrors.NewTimeoutError("", 1), Failed, false, time.Second},
	} {
		in := classify(c.err)
		if in.Event != c.want || in.Unreachable != c.unreachable || in.RetryAfter != c.after || in.Err == nil {
			t.Errorf("%s: %+v", c.name, in)
		}
	}
}
