package sink

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. Its text is a whole number with a unit as in Kubernetes: Ki, Mi, Gi, Ti, or the powers
// of 1000 k, M, G, T. A trailing B is optional.
type Size int64

var units = map[string]int64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
}

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "kKMGTiB")
	unit, ok := units[strings.TrimSuffix(string(text[len(digits):]), "B")]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("read size %q: not a whole number with a unit, such as 100Mi", text)
	}
	*s = Size(n * unit)
	return nil
}
