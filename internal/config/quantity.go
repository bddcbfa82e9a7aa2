package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes. Its text is a whole number with a unit as in Kubernetes (Ki, Mi, Gi, Ti; k, M, G,
// T are powers of 1000), optionally followed by a B.
type Size int64

var units = []struct {
	name  string
	bytes Size
}{{"Ti", 1 << 40}, {"T", 1e12}, {"Gi", 1 << 30}, {"G", 1e9}, {"Mi", 1 << 20}, {"M", 1e6}, {"Ki", 1 << 10}, {"k", 1e3}, {"K", 1e3}, {"", 1}}

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(text []byte) error {
	number := strings.TrimSuffix(string(text), "B")
	for _, u := range units {
		digits, ok := strings.CutSuffix(number, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
		if err != nil || Size(n) > math.MaxInt64/u.bytes {
			break
		}
		*s = Size(n) * u.bytes
		return nil
	}
	return fmt.Errorf("%q is not a size: want a whole number with a unit, such as 100Mi or 1Gi", text)
}

// String returns the shortest exact text: 100Mi.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && s%u.bytes == 0 && u.name != "K" {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return "0"
}

var days = regexp.MustCompile(`^(\d{1,6})([dw])`)

// parseDuration parses Go's durations, optionally preceded by weeks and days: 30d, 1d12h, 90s.
func parseDuration(text string) (time.Duration, error) {
	var sum time.Duration
	rest := text
	for m := days.FindStringSubmatch(rest); m != nil; m = days.FindStringSubmatch(rest) {
		n, _ := strconv.Atoi(m[1]) // at most six digits
		day := 24 * time.Hour
		if m[2] == "w" {
			day *= 7
		}
		if time.Duration(n) > (math.MaxInt64-sum)/day {
			return 0, fmt.Errorf("%q is too long", text)
		}
		sum += time.Duration(n) * day
		rest = rest[len(m[0]):]
	}
	if rest == "" && text != "" {
		return sum, nil
	}
	d, err := time.ParseDuration(rest)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration: want a number with a unit, such as 90s, 12h or 30d", text)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", text)
	case d > math.MaxInt64-sum:
		return 0, fmt.Errorf("%q is too long", text)
	}
	return sum + d, nil
}
