package reflector

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Overload costs no history. A watch that fails with 408, 429, 502, 503 or 504 is resumed from its version after a
// delay, however often. The same holds after a 500, unless the probe shows that a watch at the server's own version
// works while ours fails three times in a row: then a list follows, behind a gap, as after three 4xx.
//
// One 401 is not a refusal: client-go drops its cached token after it, so the next request normally works. The fourth
// in a row is a refusal.

// maxRetryAfter bounds the delay that a server may request.
const maxRetryAfter = time.Hour

// classify turns an error into an input.
func classify(err error) Input {
	in := Input{Event: Failed, Err: err}
	var st apierrors.APIStatus
	switch {
	case errors.As(err, &st):
		if s, ok := apierrors.SuggestsClientDelay(err); ok {
			in.RetryAfter = min(time.Duration(s)*time.Second, maxRetryAfter)
		}
		in.Event = event(st.Status())
		in.Overload = overloaded(st.Status().Code)
		in.Throttled = st.Status().Code == http.StatusTooManyRequests
		if in.Event == Missing && apierrors.IsUnexpectedServerError(err) { // the response did not come from an API server
			in.Event = Failed
		}
	case errors.Is(err, ErrReplaced):
		in.Event = Replaced
	case errors.Is(err, ErrMissed):
		in.Event = Unverified
	case errors.Is(err, errUnended):
		in.Event = Unended
	default:
		in.Unreachable = !wire.Unreadable(err) && !errors.As(err, new(badList))
	}
	return in
}

func event(st metav1.Status) Event {
	switch code := st.Code; {
	case code == http.StatusGone, st.Reason == metav1.StatusReasonExpired:
		return Expired
	case code == http.StatusUnauthorized:
		return Unauthorized
	case code == http.StatusNotFound:
		return Missing
	case code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooManyRequests:
		return Failed
	case 400 <= code && code < 500:
		return Refused
	}
	return Failed
}

// overloaded reports whether a server, or a proxy before it, sends this status for any request while it is
// overloaded.
func overloaded(code int32) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// IsRefusal reports whether the server refused for a reason that waiting does not change. A 401 is not such a
// refusal: after one, client-go drops its cached token, so the next request may work.
func IsRefusal(err error) bool {
	e := classify(err).Event
	return e == Refused || e == Missing
}

// status returns the error carried by an ERROR event.
func status(f wire.Format, raw []byte) error {
	st, err := wire.DecodeStatus(f, raw)
	if err != nil {
		return fmt.Errorf("read error event: %w", err)
	}
	return &apierrors.StatusError{ErrStatus: *st}
}
