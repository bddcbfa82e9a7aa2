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
	whole   bool                            // already searched for a manifest
	jwts    bool                            // has a word of a JSON web token
	within  int                             // number of texts around it
	holds   func(s string, within int) bool // holdsCredential
	formed  map[*form]int                   // the end of the searched part
	line    span                            // the last line whose end was sought
	rows    int                             // the end of the values of an INSERT INTO
}

// clue is a word that a text is searched for. find returns what begins, ends or goes on where the word ends: ok if it is a
// credential; else, a span without a name need not be searched again. A word without find is part of a name.
type clue struct {
	text string
	find func(t *search, end int) (at span, ok bool)
}

// clues are all of them, those of names last.
var clues = func() (all []clue) {
	add := func(find func(*search, int) (span, bool), texts ...string) {
		for _, text := range texts {
			all = append(all, clue{strings.ToLower(text), find})
		}
	}
	for i := range tokens {
		add(tokens[i].find, tokens[i].prefix)
	}
	for i := range forms {
		add(forms[i].find, forms[i].word)
	}
	add((*search).inserted, "insert into ", "ignore into ", "replace into ")
	add((*search).hookPath, hooks...)
	add((*search).userInfo, "://", `:\/\/`)
	add((*search).pemKey, pemBegin, "---- BEGIN") // of the same length
	add((*search).puttyKey, "PuTTY-User-Key-File")
	add((*search).encodedKey, pemBase64)
	add((*search).dataURL, ";base64,")
	add((*search).escapedURL, "%3a%2f%2f")
	add((*search).webToken, "eyJ", "eyA")
	add(nil, stems...)
	add(nil, "_pat", "_pw", "-pw", "stringdata", "securejsondata", "kty", "sensitive", "masked")
	return all
}()

// textMatcher finds all words, proseMatcher all except names.
var textMatcher, proseMatcher = func() (all, prose *matcher) {
	texts, named := []string{}, 0
	for i, w := range clues {
		if texts = append(texts, w.text); w.find != nil {
			named = i + 1
		}
	}
	return newMatcher(texts), newMatcher(texts[:named])
}()

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
	t := search{s: s, command: how == asCommand, prose: how == asProse, lines: strings.Contains(s, "\n"), within: within, holds: holdsCredential}
	if !t.prose && (t.command || strings.Contains(s, " -")) {
		t.program()
	}
	t.tokenForms()
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
	state, end, named, done := uint32(0), max(0, first-m.longest), 0, 0
	for {
		if state, end = m.find(t.s, end, state); end < 0 {
			break
		}
		for _, id := range m.words(state) {
			switch find := clues[id].find; {
			case find == nil && end > named:
				named = t.name(end)
			case find != nil && end > done:
				at, ok := find(t, end)
				if ok {
					t.found = append(t.found, at)
				}
				if ok || at.name == "" {
					done = max(done, at.to)
				}
			}
		}
	}
	if t.jwts {
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

// dataField matches data: and stringData: of a Secret, in YAML and JSON.
var dataField = regexp.MustCompile(`[dD]ata\\*["']?\s*:`)

// manifest redacts all of a text that contains a Secret in YAML or JSON.
func (t *search) manifest() {
	if !t.whole && dataField.MatchString(t.s) {
		t.found = append(t.found, span{0, len(t.s), "manifest"})
	}
	t.whole = true
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
