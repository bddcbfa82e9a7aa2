package redact

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/internal/jsonscan"
)

// Wants reports, from an object's JSON, whether Apply may change it. In unclear cases it returns true. resource
// is as in Apply.
func (r *Redactor) Wants(resource string, raw []byte) bool {
	if resource == secrets || resource == configMaps || r.Ruled(resource) {
		return true
	}
	s := scanner{resource: resource, raw: raw, text: string(raw)}
	return !s.value(below{}) || s.next() != 0 || s.pos < len(raw)
}

// scanJSON reports whether a text consists of JSON values, and whether Apply may redact any. within is the number
// of JSON texts around it.
func scanJSON(resource, text string, how manner, within int) (isJSON, hides bool) {
	text = strings.TrimPrefix(text, byteOrderMark)
	s := scanner{resource: resource, raw: []byte(text), text: text, within: within + 1}
	for s.next() != 0 || s.pos < len(s.raw) {
		from := s.pos
		if hides || within == maxWithin || !s.value(below{how: how}) {
			hides = true
			s.depth, s.meta = 0, false
			if s.pos = jsonscan.Value(s.raw, from, jsonscan.MaxDepth); s.pos < 0 {
				return false, hides
			}
		}
	}
	if within == maxWithin { // deeper ones are not decoded
		hides = textMatcher.any(text) || strings.IndexByte(text, '\\') >= 0
	}
	return true, hides
}

// hidesJSON reports whether a text consists of JSON values of which Apply may redact one.
func hidesJSON(text string) bool {
	isJSON, hides := scanJSON("", text, asText, 0)
	return isJSON && hides
}

// scanner reads JSON only as far as needed to prove that Apply would redact nothing. Its methods return false
// if Apply might, and for input that they cannot parse simply.
type scanner struct {
	resource string
	raw      []byte
	text     string // raw
	pos      int
	depth    int
	within   int    // the number of JSON texts around and including this one; 0 for an object
	meta     bool   // within the object's metadata
	values   []byte // of strings with escapes
}

// below is the context of a value, as known to Apply's walk.
type below struct {
	kind       kindOfName // of the field
	how        manner
	contains   bool // in a container; see containers
	annotation bool
	name       string // of the field
}

// maxScanned bounds the scanner's depth.
const maxScanned = 100

// next skips white space and returns the next byte; 0 at the end.
func (s *scanner) next() byte {
	if s.pos = jsonscan.Space(s.raw, s.pos); s.pos < len(s.raw) {
		return s.raw[s.pos]
	}
	return 0
}

// take skips a byte, which must come next.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

// value reads a value.
func (s *scanner) value(b below) bool {
	switch s.next() {
	case '"':
		text, ok := s.str()
		return ok && !s.hidesText(b, text)
	case '{':
		return s.object(b)
	case '[':
		return s.array(b)
	case 't', 'f', 'n':
		return s.skip()
	}
	return s.skip() && b.kind != credentialName // a number
}

// hidesText reports whether Apply may redact a text.
func (s *scanner) hidesText(b below, text string) bool {
	if says(b.kind, text) || b.annotation && isManifest(text) {
		return true
	}
	if mayBeJSON(text) {
		if isJSON, hides := scanJSON(s.resource, text, b.how, s.within); isJSON {
			return hides
		}
	}
	return hidesWhole(text) || holdsCredential(text, b.how)
}

// str reads and decodes a string; false if it is invalid.
func (s *scanner) str() (string, bool) {
	from := s.pos + 1
	end, form := jsonscan.String(s.raw, from)
	s.pos = end + 1
	switch {
	case form == jsonscan.Invalid:
		return "", false
	case form == jsonscan.ASCII, form == jsonscan.Plain && utf8.Valid(s.raw[from:end]):
		return s.text[from:end], true
	}
	s.values = jsonscan.Unquote(s.values[:0], s.raw[from:end])
	return string(s.values), true
}

func (s *scanner) object(b below) bool {
	s.pos++
	s.depth++
	p := pairing{}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') || s.next() != '"' || s.depth > maxScanned {
			return false
		}
		name, ok := s.str()
		if !ok || !s.take(':') {
			return false
		}
		if s.depth == 1 && s.within == 0 {
			s.meta = name == "metadata"
		}
		switch {
		case s.meta && s.depth == 2 && (name == "managedFields" || name == "ownerReferences"):
			ok = s.next() != 0 && s.skip()
		case s.depth == 1 && s.within == 0 && name == "kind" || s.meta && s.depth == 2 && identifying[name]:
			ok = s.next() == '"' && s.identity(name, &p)
		default:
			ok = s.field(b, name, &p)
		}
		if !ok {
			return false
		}
	}
	s.depth--
	return !p.hides()
}

// identity reads a text that Apply leaves alone, unless it is the kind of another object.
func (s *scanner) identity(field string, p *pairing) bool {
	text, ok := s.str()
	p.name(field, text)
	return ok && (field != "kind" || !redactedKind(text))
}

func redactedKind(kind string) bool {
	return kind == "Secret" || kind == "ConfigMap" || kind == "SecretList" || kind == "ConfigMapList"
}

// pairing records whether an object is a pair of a credential's name and its value.
type pairing struct{ named, valued, spared bool }

func (p *pairing) hides() bool { return p.named && p.valued && !p.spared }

// name records a field that may hold the name.
func (p *pairing) name(field, text string) {
	p.named = p.named || fieldTraits[field]&(isNamed|isFlag) == isNamed && namedPair(field, text) != plainName
}

// field reads the value of a field.
func (s *scanner) field(parent below, name string, p *pairing) bool {
	if name == "stringData" || name == "kty" {
		return false
	}
	facts := factsOf(name)
	b := below{kind: fieldKind(parent.name, name, facts), how: manners(s.resource, name, facts, parent.how), annotation: parent.name == "annotations", name: name}
	c := s.next()
	maybe := b.kind
	if b.kind == maybeName && b.how != asCommand {
		b.kind = plainName
	}
	b.contains = c == '{' && facts.container
	if name == "users" && isAuth(parent.name) {
		b.kind = manyName
	}
	traits := facts.trait
	p.named = p.named || c == 't' && traits&isFlag != 0
	if c == '"' {
		from := s.pos
		text, ok := s.str()
		if !ok || facts.copy && repeatsManifest(name, text) || name == "kind" && redactedKind(text) || holdsLogin(name, maybe, text) {
			return false
		}
		if (parent.kind > maybeName && slices.Contains(inlineValues, name) || parent.contains && !describing(name)) && says(credentialName, text) {
			return false
		}
		if traits&isNamed != 0 {
			p.name(name, text)
		}
		p.valued = p.valued || traits&isValued != 0 && says(credentialName, text)
		s.pos = from
	} else if c != 't' && c != 'f' && c != 'n' {
		p.valued = p.valued || traits&isValued != 0
		if parent.kind > maybeName && c != '{' && c != '[' && slices.Contains(inlineValues, name) {
			return false
		}
	}
	p.spared = p.spared || traits&isSpare != 0
	return s.value(b)
}

func (s *scanner) array(b below) bool {
	s.pos++
	s.depth++
	b.annotation, b.contains = false, false
	of := b.kind // of objects and numbers in the list
	switch {
	case b.name == "": // a list in a list, of the same kind
	case b.kind == manyName && strings.HasSuffix(strings.ToLower(b.name), "secrets"):
		b.kind = refName
	case b.kind == maybeName, b.kind == refName:
		b.kind = plainName
	}
	begins := b.name == "command" // of a line that args may continue
	b.name = ""
	kind, c := b.kind, command{}
	for first := true; !s.take(']'); first = false {
		if !first && !s.take(',') || s.depth > maxScanned {
			return false
		}
		if s.next() != '"' {
			if b.kind = of; s.next() == '[' {
				b.kind = kind
			}
			if !s.value(b) {
				return false
			}
			c.before = ""
			continue
		}
		text, ok := s.str()
		if !ok || first && (isProgram(text) || isWrapper(text)) {
			return false
		}
		before := c.before
		if c.flagged(text) || announcedBy(before, text) || s.hidesText(below{kind: kind, how: asCommand}, text) {
			return false
		}
	}
	s.depth--
	return !begins || announces(c.before) == plainName && !userFlags[c.before]
}

// skip skips a value.
func (s *scanner) skip() bool {
	s.pos = jsonscan.Value(s.raw, s.pos, jsonscan.MaxDepth)
	return s.pos >= 0
}
