package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

const (
	secrets    = "secrets"
	configMaps = "configmaps"
)

// run redacts the values of one object.
type run struct {
	key      []byte
	mac      hash.Hash // nil until a value is redacted
	sum      []byte
	resource string
	id       string          // the object's UID
	path     place           // of the current value
	hidden   int             // number of redacted values
	within   int             // nesting of texts; see run.embedded
	made     map[string]bool // the markers of this run, which no other rule redacts again
	plain    map[string]bool // the plain text of values; see note
	again    bool            // markers of earlier runs stay, too
}

// newRun returns the run for an object of this identity. Without a UID, as in client-go's fakes, the name
// distinguishes objects.
func newRun(key []byte, resource, uid, namespace, name string) *run {
	if uid == "" {
		uid = fmt.Sprintf("%s %q %q", resource, namespace, name)
	}
	return &run{key: key, resource: resource, id: uid, path: place{steps: make([]step, 0, 16)}}
}

// Enter, Leave and Selected implement the visitor of a user's rule.
func (a *run) Enter(e diff.Elem) { a.path.push(step{other: &e}) }

// Leave undoes Enter.
func (a *run) Leave() { a.path.pop() }

// Selected redacts a value.
func (a *run) Selected(v any) any {
	s, isString := v.(string)
	if v == nil || isString && a.stays(s) {
		return v
	}
	a.note(v)
	if isString {
		return a.marker("string", []byte(s))
	}
	return a.marker("json", canonical(v))
}

// stays reports whether a text is the marker of a value that is already hidden.
func (a *run) stays(s string) bool {
	return a.made[s] || a.again && onlyMarkers(s)
}

// hide redacts a value. Null reveals nothing and stays.
func (a *run) hide(t *tree, n *node) {
	switch {
	case n.kind == 'n', n.made != "", n.kind == '"' && a.stays(n.text):
	case n.kind == '"':
		a.note(n.text)
		t.replace(n, a.marker("string", []byte(n.text)))
	default:
		text := t.canonical(n)
		if v, err := decodeJSON(text); err == nil {
			a.note(v)
		}
		t.replace(n, a.marker("json", text))
	}
}

// hideEach redacts the fields or elements of a value for which hides is true, or all of them without it; the value itself
// if it is not of the kind.
func (a *run) hideEach(t *tree, n *node, kind byte, hides func(*node) bool) {
	if n.kind != kind {
		a.hide(t, n)
		return
	}
	a.each(t, n, func(v *node) {
		if hides == nil || hides(v) {
			a.hide(t, v)
		}
	})
}

// each calls do for the fields or elements of a value, with their paths.
func (a *run) each(t *tree, n *node, do func(*node)) {
	index := 0
	for i := n.child; i != 0; i, index = t.at(i).next, index+1 {
		if v := t.at(i); n.kind == '[' {
			a.path.push(element(t, v, index))
		} else {
			a.path.pushField(v.key)
		}
		do(t.at(i))
		a.path.pop()
	}
}

// marker returns the marker of a value of the given form.
func (a *run) marker(form string, value []byte) string {
	if a.mac == nil {
		a.mac, a.made = hmac.New(sha256.New, a.key), map[string]bool{}
	}
	a.mac.Reset()
	for _, part := range [...][]byte{[]byte(a.id), a.path.identity(), []byte(form), value} {
		cost(len(part))
		// Prefixing each part with its length makes the encoding unambiguous.
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		a.mac.Write(length[:])
		a.mac.Write(part)
	}
	a.sum = a.mac.Sum(a.sum[:0])
	marker := diff.HiddenPrefix + hex.EncodeToString(a.sum[:8])
	a.made[marker] = true
	a.hidden++
	return marker
}

// reveal is Redactor.Reveal for an object or a part of one.
func (a *run) reveal(m, later map[string]any) {
	for key, old := range m {
		a.path.pushField(key)
		now := later[key]
		_, hidden := diff.Hidden(old)
		part, _ := old.(map[string]any)
		then, _ := now.(map[string]any)
		switch {
		case hidden && a.Selected(now) == old:
			m[key] = now
		case part != nil && then != nil:
			a.reveal(part, then)
		}
		a.path.pop()
	}
}

// maxWithin bounds the nesting of texts, as JSON in JSON, that are searched.
const maxWithin = 4

// minText is the length from which a text may have a credential: pw=x.
const minText = 4

// isBare reports whether a text has no character that could part a name from its value, as most values of an object.
// It may only be a token, or base64.
func isBare(s string) bool {
	for i := range len(s) {
		if !isWordByte(s[i]) && (s[i] < '-' || s[i] > '/') && s[i] != '_' { // - . /
			return false
		}
	}
	return true
}

// minToken is the length of the shortest token: xoxb-0123456789.
const minToken = 15

// mayHaveFlags reports whether a text without any word of a credential may be a list with arguments.
func mayHaveFlags(s string) bool {
	return strings.IndexByte(s, '-') >= 0 && (strings.Contains(s, "- -") || strings.Contains(s, `"-`))
}

// text returns a text without its credentials, if it has any. A one-line text is redacted whole; in multi-line texts,
// JSON, YAML and XML, credentials are replaced in place, so that a file still shows its other changes.
func (a *run) text(s string, how manner) (made string, hid bool) {
	if len(s) < minText || a.again && a.stays(s) {
		return s, false
	}
	if isBare(s) {
		if len(s) < minToken {
			return s, false
		}
		how = asProse
	} else if mayBeJSON(s) {
		if made, hid, ok := a.document(s, how.inFile(), (*tree).readJSON); ok {
			return made, hid
		}
	}
	if hidesWhole(s, a.within) {
		return a.whole(s), true
	}
	how = how.of(s)
	plain := s
	_, first := how.matcher().find(s, 0, 0)
	if first < 0 && len(s) < minForm && strings.IndexByte(s, ' ') < 0 {
		return s, false
	}
	if first >= 0 || mayHaveFlags(s) {
		plain = plainSpaces(s)
		if how != asProse && (plain[0] == '<' || strings.Contains(plain, "\n")) {
			if made, hid, ok := a.file(plain, how); hid || ok {
				return made, hid
			}
		}
	}
	found := a.credentials(plain, how, first)
	switch {
	case len(found) == 0:
		return s, false
	case !strings.Contains(s, "\n"):
		return a.whole(s), true
	}
	return a.parts(plain, found), true
}

// credentials returns the spans of a text's credentials, without the markers that stay.
func (a *run) credentials(s string, how manner, first int) []span {
	if !a.again {
		return credentials(s, how, first, a.within)
	}
	found := credentials(joinMarkers(s), how, first, a.within)
	return slices.DeleteFunc(found, func(at span) bool { return onlyMarkers(s[at.from:at.to]) })
}

// file redacts a text that is YAML or XML; ok is false if it is neither.
func (a *run) file(s string, how manner) (made string, hid, ok bool) {
	if made, hid, ok = a.document(s, how.inFile(), (*tree).readYAML); ok {
		return made, hid, ok
	}
	return a.document(s, how.inFile(), (*tree).readXML)
}

// whole returns the marker of a text.
func (a *run) whole(s string) string {
	a.note(s)
	return a.marker("string", []byte(s))
}

// part returns the marker of a part of a text, whose path ends with its name and how often the name came before: names has
// these.
func (a *run) part(s, name string, names *map[string]int) string {
	if a.stays(s) {
		return s
	}
	if *names == nil {
		*names = map[string]int{}
	}
	n := (*names)[name]
	(*names)[name]++
	if n > 0 {
		name += " " + strconv.Itoa(n+1)
	}
	a.path.push(step{kind: diff.Value, text: name})
	defer a.path.pop()
	return a.whole(s)
}

// parts replaces parts of a text.
func (a *run) parts(s string, found []span) string {
	var out strings.Builder
	var names map[string]int
	end := 0
	for _, at := range found {
		out.WriteString(s[end:at.from])
		out.WriteString(a.part(s[at.from:at.to], at.name, &names))
		end = at.to
	}
	out.WriteString(s[end:])
	a.note(s)
	return out.String()
}

// document redacts a text that read understands by the rules for objects; ok is false if it does not.
func (a *run) document(s string, how manner, read func(*tree) bool) (made string, hid, ok bool) {
	source := strings.TrimPrefix(s, byteOrderMark)
	t := newTree(source, []byte(source))
	defer t.free()
	if !read(t) {
		return "", false, false
	}
	if a.within == maxWithin { // deeper ones are not searched
		if textMatcher.any(s) || strings.IndexByte(s, '\\') >= 0 {
			return a.whole(s), true, true
		}
		return s, false, true
	}
	before := a.hidden
	a.within++
	index := 0
	for i := t.root(); i != 0; i, index = t.at(i).next, index+1 {
		if index > 0 {
			a.path.push(step{kind: diff.Index, index: index})
		}
		a.value(t, t.at(i), context{how: how})
		if index > 0 {
			a.path.pop()
		}
	}
	a.comments(t, how)
	a.within--
	if a.hidden == before {
		return s, false, true
	}
	a.note(s)
	return s[:len(s)-len(source)] + t.write(), true, true
}

// comments redacts what is between the values of a document, if it has comments.
func (a *run) comments(t *tree, how manner) {
	if len(t.gaps) == 0 {
		return
	}
	var names map[string]int
	hidden := map[int]bool{} // where hidden values end
	for i := range t.nodes {
		if n := &t.nodes[i]; n.made != "" {
			hidden[n.to] = true
		}
	}
	for _, gap := range t.gaps {
		end := gap.from + lineEnd(t.source[gap.from:gap.to], 0)
		if rest := strings.TrimLeft(t.source[gap.from:end], " \t"); hidden[gap.from] && strings.HasPrefix(rest, "#") && (!strings.HasPrefix(rest, "# ") || slices.ContainsFunc(strings.Fields(rest), isMixed)) { // a part of it, or another one
			t.extra = append(t.extra, part{end - len(rest), end, a.part(rest, "comment", &names)})
			gap.from = end
		}
		for _, at := range a.credentials(t.source[gap.from:gap.to], how, 0) {
			from, to := gap.from+at.from, gap.from+at.to
			t.extra = append(t.extra, part{from, to, a.part(t.source[from:to], at.name, &names)})
		}
	}
}

// hidesWhole reports whether a text encodes another one that contains a credential. within is the number of texts
// around it.
func hidesWhole(s string, within int) bool {
	if len(s) < minCoded || within > maxWithin {
		return false
	}
	s = strings.Trim(s, "\"' \t\r\n")
	if isZipped(s) {
		return true
	}
	text, ok := decoded(s)
	if !ok {
		return false
	}
	if tunnel.MatchString(text) {
		return true
	}
	return holdsCredential(text, within)
}

// holdsCredential reports whether a text has a credential; within is the number of texts around it.
func holdsCredential(s string, within int) bool {
	a := run{key: []byte{0}, path: place{steps: make([]step, 0, 16)}, within: within + 1}
	_, hid := a.text(s, asText)
	return hid
}

// byteOrderMark may start a file.
const byteOrderMark = "\ufeff"

// mayBeJSON reports whether a text starts like an object, a list, or a text with escapes.
func mayBeJSON(s string) bool {
	s = strings.TrimPrefix(s, byteOrderMark)
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			return i+1 < len(s)
		case '"':
			return strings.HasSuffix(s, `"`) && strings.IndexByte(s, '\\') >= 0
		default:
			return false
		}
	}
	return false
}

func decodeJSON(text []byte) (v any, err error) {
	err = json.Unmarshal(text, &v)
	return v, err
}

// canonical encodes JSON with sorted keys.
func canonical(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // cannot happen for values decoded from JSON; redacted all the same
		return fmt.Append(nil, v)
	}
	return text
}
