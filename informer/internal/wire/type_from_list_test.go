package wire

import (
	"strings"
	"testing"
)

// TestTypeFromList checks that an item reports whether its kind is its own or the list's.
func TestTypeFromList(t *testing.T) {
	l := NewList(JSON, strings.NewReader(`{"kind":"PodList","apiVersion":"v1","items":[`+
		`{"metadata":{"name":"a"}},{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}},{"metadata":{"name":"c"}}]}`))
	for _, want := range []bool{true, false, true} {
		if o, err := l.Next(); err != nil || o.TypeFromList != want || !o.Typed {
			t.Errorf("%s: lent %v, typed %v, %v", o.Name, o.TypeFromList, o.Typed, err)
		}
	}
}
