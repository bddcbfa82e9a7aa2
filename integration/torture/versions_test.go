package torture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// compare orders resource versions: by length, then bytes.
func compare(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// span is a range of versions, from exclusive, to inclusive; an empty bound is open.
type span struct{ from, to string }

func (s span) has(v string) bool {
	return (s.from == "" || compare(v, s.from) > 0) && (s.to == "" || compare(v, s.to) <= 0)
}

// stem is the part of an object that the judge reads.
type stem struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`

		CreationTimestamp time.Time `json:"creationTimestamp"`
		DeletionTimestamp string    `json:"deletionTimestamp"`

		ManagedFields []struct {
			Time time.Time `json:"time"`
		} `json:"managedFields"`
	} `json:"metadata"`
}

// marker matches the replacement of a hidden value.
var marker = regexp.MustCompile(`^hidden #[0-9a-f]{16}$`)

// masked replaces every hidden value.
const masked = "\x00masked"

// hides reports whether a field of a kind must be hidden: the values that the hands write and tools must not
// show.
func hides(kind string, path []string) bool {
	switch kind {
	case secrets.name():
		return len(path) == 2 && path[0] == "data" ||
			len(path) == 3 && path[0] == "metadata" && path[1] == "annotations"
	case configMaps.name():
		return len(path) == 2 && path[0] == "data" && (path[1] == "password" || path[1] == "hush")
	case deployments.name():
		at := strings.Join(path, ".")
		return strings.HasPrefix(at, "spec.template.spec.containers.") && strings.HasSuffix(at, ".env.0.value")
	}
	return false
}

// hidden is a value and its marker.
type hidden struct{ path, marker, plain string }

// canonical returns an object's JSON with sorted keys and masks for hidden values, and the hidden values.
// recorded says that the object is from the journal rather than from the server: then every hidden place must
// have a marker, and no other place may.
func canonical(kind string, raw []byte, recorded bool) (text string, under []hidden, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o fields
	if err := d.Decode(&o); err != nil {
		return "", nil, fmt.Errorf("decode %.200q: %w", raw, err)
	}
	var walk func(v any, path []string) (any, error)
	walk = func(v any, path []string) (any, error) {
		switch v := v.(type) {
		case fields:
			for k, child := range v {
				now, err := walk(child, append(path[:len(path):len(path)], k))
				if err != nil {
					return nil, err
				}
				v[k] = now
			}
			return v, nil
		case []any:
			for i, child := range v {
				now, err := walk(child, append(path[:len(path):len(path)], fmt.Sprint(i)))
				if err != nil {
					return nil, err
				}
				v[i] = now
			}
			return v, nil
		case string:
			must, is := hides(kind, path), marker.MatchString(v)
			switch {
			case recorded && must != is:
				return nil, fmt.Errorf("%s is %q: hidden %v, want %v", strings.Join(path, "."), v, is, must)
			case must:
				under = append(under, hidden{strings.Join(path, "."), v, v})
				return masked, nil
			}
		}
		return v, nil
	}
	if _, err := walk(o, nil); err != nil {
		return "", nil, err
	}
	b, err := json.Marshal(o) // sorts keys
	return string(b), under, err
}

// itemOf completes an item of a list, which has neither kind nor apiVersion.
func itemOf(t *testing.T, r resource, item json.RawMessage) (id identity, namespace string, body []byte) {
	t.Helper()
	var s stem
	var o fields
	err := errors.Join(json.Unmarshal(item, &s), decode(item, &o))
	if err == nil {
		o["apiVersion"], o["kind"] = r.apiVersion(), r.kind
		body, err = json.Marshal(o)
	}
	if err != nil {
		t.Fatalf("read %.200q: %v", item, err)
	}
	return identity{r.name(), s.Metadata.UID}, s.Metadata.Namespace, body
}
