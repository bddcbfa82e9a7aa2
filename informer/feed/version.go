package feed

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// uidOf copies the UID, which would otherwise keep the whole object in memory.
func uidOf(d *store.Delta) types.UID { return types.UID(strings.Clone(d.UID())) }

// version copies the resource version, which would otherwise keep the whole object in memory.
func version(v *compact.Version) Version {
	return Version{ResourceVersion: strings.Clone(v.RV()), v: v}
}

// Version is one packed version of an object. It is immutable.
type Version struct {
	ResourceVersion string
	v               *compact.Version
}

// NewVersion makes a version of an object's JSON, for tests of consumers. raw is copied.
func NewVersion(resourceVersion string, raw []byte) Version {
	var p compact.Packer
	return version(p.Pack(wire.JSON, "", resourceVersion, raw))
}

// IsZero reports whether the version is absent.
func (v Version) IsZero() bool { return v.v == nil }

// Sum returns a checksum of the object's content as the server sent it, before any transform; 0: not known. If UID
// and resource version are equal but the sums differ, the server served the object in another form.
func (v Version) Sum() uint64 { return v.v.Sum() }

// Size returns the packed size, in bytes.
func (v Version) Size() int { return v.v.Size() }

// Raw returns the object's bytes, as JSON or a bare protobuf message; they belong to the caller. An absent version
// returns nil.
func (v Version) Raw() (raw []byte, format informer.Format, err error) {
	if v.v == nil {
		return nil, informer.JSON, nil
	}
	if v.v.Format() == wire.Protobuf {
		format = informer.Protobuf
	}
	raw, err = v.v.Append(nil)
	return raw, format, err
}

// JSON returns the object's JSON; the bytes belong to the caller. An absent version returns nil; a protobuf one is an
// error.
func (v Version) JSON() ([]byte, error) {
	raw, format, err := v.Raw()
	if err == nil && format != informer.JSON {
		return nil, errors.New("read object: it is protobuf, not JSON")
	}
	return raw, err
}

// Object returns the decoded object, which belongs to the caller. Integers are int64. An absent version returns a
// nil map; a protobuf one is an error.
func (v Version) Object() (map[string]any, error) {
	raw, err := v.JSON()
	if raw == nil || err != nil {
		return nil, err
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return o, nil
}
