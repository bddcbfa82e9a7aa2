package store

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// sameContent compares bytes and then, for JSON, values, since another server may order fields differently. Protobuf
// is compared by its bytes only: the generated types marshal fields and maps in a fixed order. Different formats
// count as different.
func sameContent(a, b *compact.Version) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Format() != b.Format() {
		return false
	}
	if a.Identical(b) {
		return true
	}
	rawA, errA := a.Append(nil)
	rawB, errB := b.Append(nil)
	switch {
	case errA != nil || errB != nil:
		return false
	case bytes.Equal(rawA, rawB):
		return true
	case a.Format() != wire.JSON:
		return false
	}
	var x, y any
	return json.Unmarshal(rawA, &x) == nil && json.Unmarshal(rawB, &y) == nil && reflect.DeepEqual(x, y)
}
