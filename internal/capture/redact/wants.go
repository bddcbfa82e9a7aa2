package redact

import (
	"bytes"
	"strings"
)

// Wants tells from an object's JSON, as Go's encoder writes it, whether Apply may change it: where that is
// not plain, it says so. The resource is as in Apply.
func (r *Redactor) Wants(resource string, raw []byte) bool {
	if resource == secrets || resource == configMaps || r.Ruled(resource) {
		return true
	}
	s := scanner{raw: raw}
	return !s.value(false) || s.next() != 0 || escapesMore(raw) || credentialValue(string(raw))
}

// escapesMore tells that something is escaped that Go's encoder writes as it is, of which the text does not
// show the form: objects within others keep their writers' escapes.
func escapesMore(raw []byte) bool {
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			return false
		}
		if raw = raw[at+1:]; len(raw) == 0 {
			return true
		}
		switch raw[0] {
		case '"', '\\', 'b', 'f', 'n', 'r', 't':
			raw = raw[1:]
			continue
		case 'u':
		default:
			return true
		}
		if len(raw) < 5 || !goEscape(string(raw[1:5])) {
			return true
		}
		raw = raw[5:]
	}
}

// goEscape tells whether encoding/json writes a character in this form: control characters, those of HTML, and
// what JavaScript takes for ends of lines or no character is.
func goEscape(hex string) bool {
	switch hex {
	case "003c", "003e", "0026", "007f", "2028", "2029", "fffd":
		return true
	}
	return hex < "0020"
}

// scanner reads JSON as far as it must to know that no name in it is that of something to hide. Its methods
// return false where one may be, and for what cannot be read so simply: that is for Apply.
type scanner struct {
	raw   []byte
	pos   int
	depth int
	meta  bool // it is within the object's metadata
}

// maxScanned is how deep the scanner follows.
const maxScanned = 100

// next passes over white space and returns the next byte; 0 at the end.
func (s *scanner) next() byte {
	for ; s.pos < len(s.raw); s.pos++ {
		if c := s.raw[s.pos]; c > ' ' {
			return c
		}
	}
	return 0
}

// take passes over a byte, which must come next.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

// value reads a value, of which strings are arguments, if they are such: see run.arguments.
func (s *scanner) value(arguments bool) bool {
	switch s.next() {
	case '"':
		text, ok := s.text()
		return ok && !(arguments && (bytes.IndexByte(text, '\\') >= 0 || credentialArgument(string(text))))
	case '{':
		return s.object(arguments)
	case '[':
		return s.array(arguments)
	}
	from := s.pos
	for s.pos < len(s.raw) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(s.raw[s.pos])) {
		s.pos++
	}
	return s.pos > from
}

// text reads a string and returns what is between its quotes.
func (s *scanner) text() ([]byte, bool) {
	from := s.pos + 1
	for {
		s.pos++
		n := bytes.IndexByte(s.raw[s.pos:], '"')
		if n < 0 {
			return nil, false
		}
		s.pos += n
		slashes := 0
		for s.raw[s.pos-1-slashes] == '\\' { // at the latest the first quote is none
			slashes++
		}
		if slashes%2 == 0 {
			s.pos++
			return s.raw[from : s.pos-1], true
		}
	}
}

func (s *scanner) object(arguments bool) bool {
	s.pos++
	s.depth++
	named, valued := false, false
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') || s.next() != '"' || s.depth > maxScanned {
			return false
		}
		name, ok := s.text()
		if !ok || !s.take(':') {
			return false
		}
		if s.depth == 1 {
			s.meta = string(name) == "metadata"
		}
		if s.meta && s.depth == 2 && string(name) == "managedFields" {
			ok = s.skip()
		} else {
			ok = s.field(string(name), arguments, &named)
		}
		if !ok {
			return false
		}
		valued = valued || string(name) == "value"
	}
	s.depth--
	return !(named && valued)
}

// field reads the value of a field, and notes whether that names a credential.
func (s *scanner) field(name string, arguments bool, named *bool) bool {
	if strings.Contains(name, `\`) || name == "stringData" || repeatsManifest(name) {
		return false
	}
	isText := s.next() == '"'
	from := s.pos
	if !s.value(name == "env" || name == "args" || name == "command") {
		return false
	}
	if !isText {
		return true
	}
	text := s.raw[from+1 : s.pos-1]
	switch name {
	case "name":
		*named = *named || bytes.IndexByte(text, '\\') >= 0 || credentialName(string(text))
	case "kind":
		return bytes.IndexByte(text, '\\') < 0 && string(text) != "Secret" && string(text) != "ConfigMap"
	}
	return !arguments || !credentialName(name)
}

func (s *scanner) array(arguments bool) bool {
	s.pos++
	s.depth++
	for first := true; !s.take(']'); first = false {
		if !first && !s.take(',') || s.depth > maxScanned {
			return false
		}
		if s.next() != '"' {
			if !s.value(false) {
				return false
			}
			continue
		}
		text, ok := s.text()
		if !ok || arguments && (bytes.IndexByte(text, '\\') >= 0 || announces(string(text)) || credentialArgument(string(text))) {
			return false
		}
	}
	s.depth--
	return true
}

// skip passes over a value, as far as brackets and quotes tell.
func (s *scanner) skip() bool {
	for open := 0; ; {
		switch s.next() {
		case 0:
			return false
		case '"':
			if _, ok := s.text(); !ok {
				return false
			}
			s.pos--
		case '{', '[':
			open++
		case '}', ']':
			if open--; open < 0 {
				return false
			}
		case ',', ':':
		default:
			if open == 0 { // a number or a word
				return s.value(false)
			}
		}
		if s.pos++; open == 0 {
			return true
		}
	}
}
