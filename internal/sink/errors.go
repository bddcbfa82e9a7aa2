package sink

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Wrap adds what was tried, such as "publish to HOST", to an error and masks credentials. A *PermanentError,
// *TooLargeError or *RetryAfterError stays outermost. It returns nil for nil.
func (m *Mask) Wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	text := fmt.Errorf("%s: %w", what, m.Error(err))
	var permanent *PermanentError
	var long *TooLargeError
	var wait *RetryAfterError
	switch {
	case errors.As(err, &permanent):
		return &PermanentError{Err: text}
	case errors.As(err, &long):
		return &TooLargeError{Limit: long.Limit, Err: text}
	case errors.As(err, &wait):
		return &RetryAfterError{After: wait.After, Err: text}
	}
	return text
}

// BlamesMessage reports whether an error is about a message: a *PermanentError or a *TooLargeError.
func BlamesMessage(err error) bool {
	var permanent *PermanentError
	var long *TooLargeError
	return errors.As(err, &permanent) || errors.As(err, &long)
}

// RetryAfter parses the header Retry-After, which is a number of seconds or a date. The result is at most longest.
func RetryAfter(header string, longest time.Duration) (time.Duration, bool) {
	if n, err := strconv.ParseFloat(header, 64); err == nil && n >= 0 {
		return Seconds(n, longest), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(0, time.Until(at)), longest), true
	}
	return 0, false
}

// Seconds converts seconds, at most longest.
func Seconds(n float64, longest time.Duration) time.Duration {
	return time.Duration(math.Min(n, longest.Seconds()) * float64(time.Second))
}

// LongestWait bounds a receiver's wish to wait.
const LongestWait = 365 * 24 * time.Hour
