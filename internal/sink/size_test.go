package sink_test

import (
	"testing"

	"github.com/tattler-dev/tattler/internal/sink"
)

func TestSize(t *testing.T) {
	for _, tc := range []struct {
		why, text string
		want      sink.Size // -1: an error
	}{
		{"bytes", "1048576", 1 << 20},
		{"as Kubernetes writes it", "100Mi", 100 << 20},
		{"with a B", "1GiB", 1 << 30},
		{"a power of 1000", "5M", 5e6},
		{"a B alone", "7B", 7},
		{"nothing", "0", 0},
		{"no number", "Mi", -1},
		{"an unknown unit", "5Pi", -1},
		{"an unfinished unit", "5i", -1},
		{"a fraction", "1.5Gi", -1},
		{"negative", "-1", -1},
		{"too much", "9999999Ti", -1},
		{"empty", "", -1},
	} {
		var got sink.Size
		err := got.UnmarshalText([]byte(tc.text))
		if (err != nil) != (tc.want == -1) || err == nil && got != tc.want {
			t.Errorf("%s: %q is %d, %v; want %d", tc.why, tc.text, got, err, tc.want)
		}
	}
}
