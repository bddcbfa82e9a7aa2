package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

const (
	secrets    = "secrets"
	configMaps = "configmaps"
)

// run hides the values of one object.
type run struct {
	key      []byte
	mac      hash.Hash // nil until something is hidden
	resource string
	id       string          // the object's UID
	path     []step          // of the value at hand
	made     map[string]bool // the markers of this run, so that no rule hides them again
	plain    map[string]bool // the plain values of what is hidden: see note
	again    bool            // markers of earlier runs stay, too
}

// step is a step of a path, before it is known whether anybody needs it.
type step struct {
	kind  diff.ElemKind
	text  string // name of a Field or of a Keyed element, or Value
	index int
}

func (s step) elem() diff.Elem {
	switch s.kind {
	case diff.Index:
		return diff.Elem{Kind: diff.Index, Index: s.index}
	case diff.Keyed:
		return diff.Elem{Kind: diff.Keyed, Keys: []diff.KeyValue{{Name: "name", Value: s.text}}}
	case diff.Value:
		return diff.Elem{Kind: diff.Value, Value: s.text}
	}
	return diff.Elem{Kind: diff.Field, Name: s.text}
}

func newRun(key []byte, resource string, obj map[string]any) *run {
	meta, _ := obj["metadata"].(map[string]any)
	id, _ := meta["uid"].(string)
	if id == "" { // client-go's fakes leave it empty: the name keeps objects apart
		id = fmt.Sprintf("%s %q %q", resource, meta["namespace"], meta["name"])
	}
	return &run{key: key, resource: resource, id: id, path: make([]step, 0, 16)}
}

// object hides in a map that may be an object of Kubernetes, the root or one within another.
func (a *run) object(m map[string]any) {
	kind, _ := m["kind"].(string)
	root := len(a.path) == 0
	switch {
	case root && a.resource == secrets, kind == "Secret":
		a.secret(m)
	case root && a.resource == configMaps, kind == "ConfigMap":
		a.configMap(m)
	}
	if name, ok := m["name"].(string); ok && m["value"] != nil && credentialName(name) && !isVariable(m["value"]) {
		a.set(m, "value")
	}
	for key, v := range m {
		a.push(step{kind: diff.Field, text: key})
		m[key] = a.field(key, v)
		a.pop()
	}
}

// field returns what takes the place of a field's value.
func (a *run) field(key string, v any) any {
	switch key {
	case "managedFields":
		if len(a.path) == 2 && a.path[0] == (step{kind: diff.Field, text: "metadata"}) {
			return v // names of fields and managers: see run.managedFields
		}
	case "stringData":
		if m, ok := v.(map[string]any); ok {
			a.setAll(m)
			return m
		}
		return a.hide(v)
	case "env", "args", "command":
		return a.arguments(v)
	}
	if repeatsManifest(key) {
		return a.hide(v)
	}
	return a.value(v)
}

// value returns what takes the place of a value of which only its form tells whether to hide it.
func (a *run) value(v any) any {
	switch v := v.(type) {
	case string:
		if credentialValue(v) {
			return a.hide(v)
		}
	case map[string]any:
		a.object(v)
	case []any:
		for i := range v {
			a.push(element(v[i], i))
			v[i] = a.value(v[i])
			a.pop()
		}
	}
	return v
}

// element names a list element by its name, so that moving it does not look like a change.
func element(v any, i int) step {
	if m, ok := v.(map[string]any); ok {
		if name, ok := m["name"].(string); ok {
			return step{kind: diff.Keyed, text: name}
		}
	}
	return step{kind: diff.Index, index: i}
}

// repeatsManifest tells annotations that hold an earlier form of the whole object: of kubectl apply
// and its imitators, Rancher, and kapp.
func repeatsManifest(key string) bool {
	return strings.HasSuffix(key, "/last-applied-configuration") || strings.HasSuffix(key, "/last-applied") ||
		key == "objectset.rio.cattle.io/applied" || key == "kapp.k14s.io/original"
}

func (a *run) push(s step) { a.path = append(a.path, s) }

func (a *run) pop() { a.path = a.path[:len(a.path)-1] }

// under runs fn with the path of a field.
func (a *run) under(key string, fn func()) {
	a.push(step{kind: diff.Field, text: key})
	fn()
	a.pop()
}

// set hides a field, if it is there; setAll all of a map.
func (a *run) set(m map[string]any, key string) {
	if v, ok := m[key]; ok {
		a.under(key, func() { m[key] = a.hide(v) })
	}
}

func (a *run) setAll(m map[string]any) {
	for key := range m {
		a.set(m, key)
	}
}

func (a *run) hide(v any) any {
	at := make(diff.Path, len(a.path))
	for i, s := range a.path {
		at[i] = s.elem()
	}
	return a.hideAt(at, v)
}

// hideAt returns the marker of a value. Null says nothing and stays.
func (a *run) hideAt(at diff.Path, v any) any {
	s, isString := v.(string)
	if v == nil || isString && a.made[s] {
		return v
	}
	if _, hidden := diff.Hidden(v); hidden && a.again {
		return v
	}
	form, text := "string", []byte(s)
	if !isString {
		form, text = "json", canonical(v)
	}
	if a.mac == nil {
		a.mac, a.made = hmac.New(sha256.New, a.key), map[string]bool{}
	}
	a.mac.Reset()
	for _, part := range [][]byte{[]byte(a.id), []byte(at.String()), []byte(form), text} {
		// With its length before each part, no two lists of parts are the same bytes.
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		a.mac.Write(length[:])
		a.mac.Write(part)
	}
	marker := diff.HiddenPrefix + hex.EncodeToString(a.mac.Sum(nil)[:8])
	a.made[marker] = true
	a.note(v)
	return marker
}

// reveal is Redactor.Reveal for an object, or a part of one.
func (a *run) reveal(m, later map[string]any) {
	for key, old := range m {
		a.under(key, func() {
			now := later[key]
			_, hidden := diff.Hidden(old)
			part, _ := old.(map[string]any)
			then, _ := now.(map[string]any)
			switch {
			case hidden && a.hide(now) == old:
				m[key] = now
			case part != nil && then != nil:
				a.reveal(part, then)
			}
		})
	}
}

// canonical is JSON with sorted keys.
func canonical(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // not for what was decoded from JSON; hidden all the same
		return fmt.Append(nil, v)
	}
	return text
}
