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

// PartialError is the error of a Send after which the receiver has also stored messages behind the first unacknowledged one.
// The pump does not send them again while the process lives.
type PartialError struct {
	// Stored are the ids of these messages. Each of them follows only stored messages of its object.
	Stored []string
	Err    error
}

func (e *PartialError) Error() string { return e.Err.Error() }

func (e *PartialError) Unwrap() error { return e.Err }

// Partial makes a *PartialError of a Send's error, if any of the messages behind the first acked ones is stored. A stored
// message that overtook one of its object is left out: it must be sent again, so that it arrives last.
func Partial(err error, ms []Message, acked int, stored func(i int) bool) error {
	if err == nil {
		return nil
	}
	var ids []string
	missing := map[string]bool{} // by key
	for i := acked; i < len(ms); i++ {
		if m := &ms[i]; !stored(i) {
			missing[m.Key] = true
		} else if !missing[m.Key] {
			ids = append(ids, m.ID)
		}
	}
	return withStored(err, ids)
}

// Keep makes err say which messages are stored, if from does: err may have been made without from.
func Keep(err, from error) error {
	if err == nil || Stored(err) != nil {
		return err
	}
	return withStored(err, Stored(from))
}

func withStored(err error, ids []string) error {
	if len(ids) == 0 {
		return err
	}
	return &PartialError{Stored: ids, Err: err}
}

// Stored returns the ids of a *PartialError.
func Stored(err error) []string {
	var partial *PartialError
	if !errors.As(err, &partial) {
		return nil
	}
	return partial.Stored
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
