package redact

import (
	"regexp"
	"slices"
	"strings"
)

// search finds the credentials in a text by the generic rule for assignments (assign.go), and by their forms.
type search struct {
	s string
	// command is set for a command line or a variable's value: a name anywhere in it may be followed by its
	// value. In other texts a name counts at the start of a line, in quotes, and before a =.
	command bool
	lines   bool // more than one
	prose   bool // names imply nothing
	found   []span
	whole   bool           // already searched for a manifest
	within  int            // number of texts around it
	formed  map[string]int // by the word of a form: the end of the searched part
	line    span           // the last line whose end was sought
}

// hit is what a word of the matcher may start, end or be part of.
type hit uint8

const (
	hitName     hit = iota // a credential's name
	hitToken               // one of tokens; the index follows
	hitURL                 // ://
	hitJWT                 // the start of a JSON web token
	hitPEM                 // a PEM key
	hitPuTTY               // a PuTTY key
	hitBase64              // a PEM key in base64
	hitPart                // part of a token; see isToken
	hitHook                // one of hooks
	hitManifest            // stringData of a Secret in YAML
	hitData                // data:text/plain;base64,
	hitPercent             // a URL within a URL
	hitForm                // one of forms
)

// textMatcher finds all of these words, proseMatcher all except names. hits gives the hit of each word.
var (
	textMatcher, hits, hitTokens = newTextMatcher(stems, "_pat", "_pw", "-pw", "securejsondata", "kty", "sensitive", "masked")
	proseMatcher, _, _           = newTextMatcher(nil)
)

// newTextMatcher also returns, by word, its hit and its index in tokens.
func newTextMatcher(names []string, short ...string) (m *matcher, hits []hit, hitTokens []int) {
	var all []string
	add := func(h hit, i int, words ...string) {
		for _, w := range words {
			all, hits, hitTokens = append(all, strings.ToLower(w)), append(hits, h), append(hitTokens, i)
		}
	}
	for i, t := range tokens {
		add(hitToken, i, t.prefix)
	}
	add(hitURL, 0, "://", `:\/\/`)
	add(hitJWT, 0, "eyJ", "eyA")
	add(hitPEM, 0, pemBegin, "---- BEGIN")
	add(hitPuTTY, 0, "PuTTY-User-Key-File")
	add(hitBase64, 0, pemBase64)
	add(hitPart, 0, ".atlasv1.", "7q~", "8q~", ":aa")
	add(hitHook, 0, hooks...)
	add(hitManifest, 0, "stringdata")
	add(hitData, 0, ";base64,")
	add(hitPercent, 0, "%3a%2f%2f")
	for i, f := range forms {
		add(hitForm, i, f.word)
	}
	add(hitName, 0, names...) // last, so that the earlier words have the same numbers without them
	add(hitName, 0, short...)
	return newMatcher(all), hits, hitTokens
}

// manner is how to read a text.
type manner uint8

const (
	asText    manner = iota
	asCommand        // a command line, or a variable's value
	asFile           // YAML or other text of a file
	asProse          // a description: names imply nothing
)

// of returns how to read a text in which a field's texts are read in this manner.
func (how manner) of(s string) manner {
	if how != asProse && isScript(s) {
		return asCommand
	}
	return how
}

// inFile returns how to read the texts in a document that a text is.
func (how manner) inFile() manner {
	if how == asText {
		return asFile
	}
	return how
}

// matcher returns the matcher of the words to look for.
func (how manner) matcher() *matcher {
	if how == asProse {
		return proseMatcher
	}
	return textMatcher
}

// credentials returns the spans of a text's credentials, in order, without overlap. Its line ends must be plain, and
// first is where the first word ends that the matcher finds, or before; -1 if there is none. within is the number of texts around it.
func credentials(s string, how manner, first, within int) []span {
	t := search{s: s, command: how == asCommand, prose: how == asProse, lines: strings.Contains(s, "\n"), within: within}
	if !t.prose && (t.command || strings.Contains(s, " -")) {
		t.program()
	}
	t.dotted()
	t.coded()
	if first >= 0 {
		t.run(how.matcher(), first)
	}
	return t.ordered()
}

// isScript reports whether a text is a shell script or input of cloud-init, wherever it occurs.
func isScript(s string) bool {
	if s == "" || isWordByte(s[0]) {
		return false
	}
	s = strings.TrimLeft(s, byteOrderMark+" \t\r\n")
	return strings.HasPrefix(s, "#!") || s != "" && s[0] == '#' && strings.Contains(s[:min(len(s), 256)], "#cloud-config")
}

// run checks each word that the matcher finds, the first of which ends at first or later, and skips parts already
// redacted.
func (t *search) run(m *matcher, first int) {
	state, end, named, done, jwts := uint32(0), max(0, first-m.longest), 0, 0, false
	for {
		if state, end = m.find(t.s, end, state); end < 0 {
			break
		}
		for _, id := range m.words(state) {
			switch {
			case hits[id] == hitJWT:
				jwts = true
			case hits[id] == hitName:
				if end > named {
					named = t.name(end)
				}
			case end > done || hits[id] == hitManifest:
				done = max(done, t.look(id, end))
			}
		}
	}
	if jwts {
		for _, at := range jwt.FindAllStringIndex(t.s, -1) {
			t.found = append(t.found, span{at[0], at[1], "token"})
		}
	}
}

// spaces replaces unusual line ends and white space by others of the same length, so that spans stay valid.
var spaces = strings.NewReplacer("\r\n", "\r\n", "\r", "\n", "\v", "\n", "\f", "\n", "\x00", "\n", "\u0085", " \n", "\u2028", "  \n", "\u2029", "  \n",
	"\u00a0", "  ")

// plainSpaces makes the text's line ends and white space plain.
func plainSpaces(s string) string {
	for i := range len(unusual) {
		if strings.IndexByte(s, unusual[i]) >= 0 {
			return spaces.Replace(s)
		}
	}
	return s
}

// unusual are the first bytes of what spaces replaces. A search for each is faster than a loop over the text.
const unusual = "\r\v\f\x00\xc2\xe2"

// look checks a word that ends at end, and returns the end of the searched part.
func (t *search) look(id uint16, end int) int {
	var at span
	var ok bool
	switch hits[id] {
	case hitToken:
		tok := &tokens[hitTokens[id]]
		from, before := end-len(tok.prefix), byte(0)
		if from > 0 {
			before = t.s[from-1]
		}
		if n := tok.length(t.s[from:], before); n > 0 {
			at, ok = span{from, from + n, "token"}, true
		}
	case hitURL:
		at, ok = userInfo(t.s, end)
	case hitPEM:
		at, ok = pemKey(t.s, end-len(pemBegin)) // as long as ---- BEGIN
	case hitPuTTY:
		at, ok = span{end, len(t.s), "private key"}, true
	case hitBase64:
		at, ok = encodedKey(t.s, end-len(pemBase64))
		if !ok {
			return max(end, at.to)
		}
	case hitHook:
		at, ok = hookPath(t.s, end)
	case hitPart:
		at, ok = tokenAround(t.s, end-1)
	case hitManifest:
		return t.manifest()
	case hitData:
		at, ok = dataURL(t.s, end, t.within)
	case hitPercent:
		if at, ok = escapedURL(t.s, end, t.within); !ok {
			return max(end, at.to)
		}
	case hitForm:
		return t.form(&forms[hitTokens[id]], end)
	}
	if !ok {
		return 0
	}
	t.found = append(t.found, at)
	return at.to
}

// dataField matches data: and stringData: of a Secret, in YAML and JSON.
var dataField = regexp.MustCompile(`[dD]ata\\*["']?\s*:`)

// manifest redacts all of a text that contains a Secret in YAML or JSON.
func (t *search) manifest() int {
	if !t.whole && dataField.MatchString(t.s) {
		t.found = append(t.found, span{0, len(t.s), "manifest"})
	}
	t.whole = true
	return 0
}

// isKind reports whether the word at from gives an object's kind: kind: Secret.
func (t *search) isKind(from int) bool {
	before := t.s[max(0, from-16):from]
	name := strings.TrimRight(before, " \t\"'\\:")
	return strings.Contains(before[len(name):], ":") && strings.HasSuffix(name, "kind")
}

// ordered sorts the spans and joins overlapping ones.
func (t *search) ordered() []span {
	slices.SortFunc(t.found, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	out := t.found[:0]
	for _, at := range t.found {
		if n := len(out); n > 0 && at.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, at.to)
			continue
		}
		out = append(out, at)
	}
	return out
}
