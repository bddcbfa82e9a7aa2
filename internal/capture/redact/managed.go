package redact

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// managedFields takes from the entries of an object's managed fields the trees that repeat a value that is
// hidden: they name elements of sets by their values (v:), and those of other lists by their merge keys (k:).
// Nobody can tell then who owns what is in such a tree.
func (a *run) managedFields(obj map[string]any) {
	if len(a.plain) == 0 {
		return
	}
	meta, _ := obj["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if fields, ok := entry["fieldsV1"]; ok && a.repeats(fields) {
			delete(entry, "fieldsV1")
		}
	}
}

// repeats tells whether a tree names an element by a value that is hidden. One that cannot be read may.
func (a *run) repeats(fields any) bool {
	text, ok := fields.(json.RawMessage)
	if !ok {
		text = canonical(fields)
	}
	if !a.mayRepeat(text) {
		return false
	}
	tree, all, err := jsonmap.DecodeObject(text)
	return err != nil || !all || a.treeRepeats(tree)
}

// mayRepeat looks for what is hidden in a tree's text, which is JSON within JSON: what is escaped there may be
// anywhere.
func (a *run) mayRepeat(text []byte) bool {
	if !bytes.Contains(text, []byte(`"v:`)) && !bytes.Contains(text, []byte(`"k:`)) {
		return false
	}
	for v := range a.plain {
		s, isText := v.(string)
		if !isText {
			s = string(canonical(v))
		}
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) }) || bytes.Contains(text, []byte(s)) {
			return true
		}
	}
	return false
}

func (a *run) treeRepeats(tree map[string]any) bool {
	for key, child := range tree {
		kind, text, _ := strings.Cut(key, ":")
		if (kind == "v" || kind == "k") && a.nameRepeats(text) {
			return true
		}
		if child, ok := child.(map[string]any); ok && a.treeRepeats(child) {
			return true
		}
	}
	return false
}

// nameRepeats is for the JSON of an element's value, or of its merge keys.
func (a *run) nameRepeats(text string) bool {
	wrapped, err := jsonmap.Decode([]byte(`{"v":` + text + `}`))
	return err != nil || a.holds(wrapped)
}

func (a *run) holds(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, v := range v {
			if a.holds(v) {
				return true
			}
		}
	case []any:
		for _, v := range v {
			if a.holds(v) {
				return true
			}
		}
	case string:
		return a.plain[v] || credentialValue(v)
	case int64, float64, bool:
		return a.plain[v]
	}
	return false
}
