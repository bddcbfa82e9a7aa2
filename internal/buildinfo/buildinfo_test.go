package buildinfo

import (
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	if v := Version(); v == "" || strings.ContainsAny(v, " ()/") {
		t.Errorf("%q is not fit for a User-Agent", v)
	}
	stamped = "v1.2.3"
	t.Cleanup(func() { stamped = "" })
	if v := Version(); v != stamped {
		t.Errorf("%q, want what the linker stamped", v)
	}
}
