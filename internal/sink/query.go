package sink

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Query maps the keys of an address's query to functions that set their values.
type Query map[string]func(value string) error

// Decode decodes a query. Of a repeated key, the last value counts, except for List. The hint ends the error about an
// unknown key. No error shows a key or a value of the query: they may be part of a credential.
func (q Query) Decode(text, hint string) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("invalid query (not shown: it may contain a credential)")
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		set := q[key]
		if set == nil {
			return fmt.Errorf("unknown key in the query: known are %s%s", strings.Join(slices.Sorted(maps.Keys(q)), ", "), hint)
		}
		for _, value := range values[key] {
			if err := set(value); err != nil {
				return fmt.Errorf("%s %w", key, err)
			}
		}
	}
	return nil
}

// PasswordHint is a hint for Decode: a ? in a password begins the query.
const PasswordHint = " (write a ? in a password as %3F)"

// Text sets a text, which must not be empty: an empty one may come from a variable that is not set.
func Text[T ~string](to *T) func(string) error {
	return func(value string) error {
		if value == "" {
			return errors.New("must not be empty")
		}
		*to = T(value)
		return nil
	}
}

// List appends to a list.
func List(to *[]string) func(string) error {
	return func(value string) error { *to = append(*to, value); return nil }
}

// Bool sets a boolean.
func Bool(to *bool) func(string) error {
	return parsed(to, strconv.ParseBool, "must be true or false")
}

// Number sets a whole number.
func Number(to *int64) func(string) error {
	return parsed(to, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }, "must be a whole number")
}

// Duration sets a duration.
func Duration(to *time.Duration) func(string) error {
	return parsed(to, time.ParseDuration, "must be a duration, such as 10s")
}

func parsed[T any](to *T, with func(string) (T, error), want string) func(string) error {
	return func(value string) error {
		v, err := with(value)
		if err != nil { // its text quotes the value
			return errors.New(want)
		}
		*to = v
		return nil
	}
}
