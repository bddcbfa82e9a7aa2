package redact

import "strings"

// note records the plain text of values of which all or a part was redacted.
func (a *run) note(v any) {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, v := range v {
			a.note(v)
		}
	case []any:
		for _, v := range v {
			a.note(v)
		}
	default:
		if a.plain == nil {
			a.plain = map[string]bool{}
		}
		s, isText := v.(string)
		if !isText {
			s = string(canonical(v))
		}
		a.plain[s] = true
	}
}

// managedFields removes the trees of managed fields that repeat a redacted value: they name elements of sets by
// value (v:) and of other lists by merge keys (k:). The owners of the fields in such a tree are then unknown.
func (a *run) managedFields(t *tree, root *node) {
	entries := t.field(t.field(root, "metadata"), "managedFields")
	if len(a.plain) == 0 || entries == nil || entries.kind != '[' {
		return
	}
	for i := entries.child; i != 0; i = t.at(i).next {
		if fields := t.field(t.at(i), "fieldsV1"); fields != nil && a.repeats(t, fields.child) {
			fields.gone = true
		}
	}
}

// repeats reports whether a tree names an element by a redacted value. An unreadable name counts as one.
func (a *run) repeats(t *tree, i int32) bool {
	for ; i != 0; i = t.at(i).next {
		f := t.at(i)
		if strings.HasPrefix(f.key, "v:") || strings.HasPrefix(f.key, "k:") {
			name := newTree(f.key[2:], []byte(f.key[2:]))
			hit := !name.readJSON()
			for j := range name.nodes {
				n := &name.nodes[j]
				hit = hit || a.plain[n.key] || strings.IndexByte("{[", n.kind) < 0 && a.plain[n.plain(name)]
			}
			name.free()
			if hit {
				return true
			}
		}
		if a.repeats(t, f.child) {
			return true
		}
	}
	return false
}

// plain returns a text, or what stands for a number, a boolean or null.
func (n *node) plain(t *tree) string {
	if n.kind == '"' {
		return n.text
	}
	return t.source[n.from:n.to]
}
