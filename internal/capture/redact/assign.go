package redact

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// name looks for a value assigned to the name whose last byte is before end, in the syntaxes of YAML, JSON,
// properties, shells, INI, TOML, XML, SQL and programs. It returns the end of the name.
func (t *search) name(end int) int {
	s := t.s
	from, to := nameAround(s, end)
	name := strings.Trim(s[from:to], ".-")
	facts := factsOf(name)
	kind := facts.kind
	if kind == plainName && name == "key" && t.lines {
		kind = fieldKind(t.above(from), name, facts)
	}
	switch {
	case facts.container && t.lines && t.container(from, to, name):
		return to
	case kind == plainName:
		return to
	case (name == "Secret" || name == "SecretList") && t.isKind(from):
		t.manifest()
		return to
	case kind == credentialName && !t.command && !t.lines && strings.EqualFold(name, "secret"): // in a message, the Secret's name
		kind = refName
	}
	if kind == credentialName && strings.EqualFold(name, "secretKey") && strings.Contains(s[max(0, from-maxGap):min(len(s), to+maxGap)], "objectName:") {
		kind = refName // of the Secrets Store CSI driver
	}
	a := assigned{search: t, from: from, to: to, flag: s[from] == '-', quoted: from > 0 && isQuote(s[from-1])}
	v, ok := a.value()
	switch {
	case !ok:
		if v, ok = t.paired(from, to); ok && v.block {
			if kind != credentialName && kind != manyName {
				return to
			}
			return max(to, t.block(v.from, v, name))
		}
	case v.block:
		return max(to, t.block(from, v, name))
	case v.isMap(s):
		return max(to, t.inMap(kind, v, name))
	case v.quote == "" && a.escaped():
		if i := strings.Index(s[v.from:v.to], `\n`); i > 0 {
			v.to = v.from + len(strings.TrimRight(s[v.from:v.from+i], `\r`))
		}
	case v.quote == "" && t.lines:
		v.to = t.continued(from, v)
	}
	if ok && a.flag && t.command && v.quote == "" && t.isShell(v.head(s)) {
		return to
	}
	if ok && !v.isMap(s) && !v.isNames(s) && says(kind, v.head(s)) && (kind != maybeName || t.command || !t.isWords(v)) {
		t.found = append(t.found, span{v.from, v.to, name})
		return max(to, v.to)
	}
	return to
}

// shellWord matches a redirection, and a variable of a shell.
var shellWord = regexp.MustCompile(`^(\d?[<>].*|\$[a-z_]\w*)$`)

// isShell reports whether the word after a flag in a script is a redirection or a variable, not a value.
func (t *search) isShell(word string) bool { return t.lines && shellWord.MatchString(word) }

// continued returns the end of a value with the lines that continue it: they are indented deeper than its name,
// and have no names.
func (t *search) continued(from int, v text) int {
	s, to := t.s, v.to
	if strings.ContainsAny(s[v.from:v.to], "(){}[]") { // of a program
		return to
	}
	indent := indentation(s, lineBegin(s, from))
	for lines := 0; lines < maxBlock; lines++ {
		line := lineEnd(s, to) + 1
		if line >= len(s) || indentation(s, line) <= indent {
			break
		}
		end := lineEnd(s, line)
		content := strings.TrimSpace(s[line:end])
		if content == "" || isField(content) || strings.ContainsAny(content, "=:{}<>;") || strings.HasPrefix(content, "-") {
			break
		}
		to = end
	}
	return to
}

// inMap redacts value: x in a map in YAML's flow style below a credential's name.
func (t *search) inMap(kind kindOfName, v text, name string) int {
	if kind == maybeName || kind == refName {
		return v.from
	}
	for i := v.from; i < v.to; i++ {
		if i = nextField(t.s, i, v.to); i < 0 {
			break
		}
		t.inline(t.s[i:v.to], i, name)
	}
	return v.from
}

// nextField returns the start of the next name after { or , before to; -1 if there is none.
func nextField(s string, i, to int) int {
	n := strings.IndexAny(s[i:to], "{,")
	if n < 0 {
		return -1
	}
	i += n + 1
	return i + len(s[i:to]) - len(strings.TrimLeft(s[i:to], " \t"))
}

// isWords reports whether a value reads like words, not like a credential.
func (t *search) isWords(v text) bool {
	value := strings.TrimSpace(t.s[v.from:v.to])
	return strings.Contains(value, " ") || isObjectName(strings.ToLower(value)) && !looksRandom(value)
}

// nameAround returns the bounds of the name whose last byte is before end; for a long name only the nearby
// part.
func nameAround(s string, end int) (from, to int) {
	from, to = end-1, end
	for from > 0 && isNameByte(s[from-1]) && end-from < maxName {
		from--
	}
	for to < len(s) && isNameByte(s[to]) && to-end < maxName {
		to++
	}
	if from > 0 && from < end-1 && s[from-1] == '\\' && strings.IndexByte("nrt", s[from]) >= 0 { // an escaped line end or tab
		from++
	}
	for !isNameByte(s[from]) && from < end-1 { // skip bytes that are not part of a name, such as in a header's
		from++
	}
	return from, to
}

func isNameByte(b byte) bool {
	return isWordByte(b) || b == '_' || b == '-' || b == '.' || b >= utf8.RuneSelf
}

func isQuote(b byte) bool { return b == '"' || b == '\'' || b == '`' }

// assigned is a name in a text whose value is sought.
type assigned struct {
	*search
	from, to     int
	flag, quoted bool
}

// text is the position of a value. quote is its delimiter; a block is on the lines below, literal if introduced
// by YAML's | or >.
type text struct {
	from, to       int
	quote          string
	block, literal bool
	rest           int // where a comment, an anchor or a tag before the block starts; 0 without one
}

// isMap reports whether a value is a map in YAML's flow style: secret: {name: x}. Its fields are matched by
// their own names.
func (v text) isMap(s string) bool {
	return v.quote == "" && strings.HasPrefix(s[v.from:v.to], "{") && !strings.HasPrefix(s[v.from:v.to], "{{") &&
		strings.Contains(s[v.from:v.to], ":") && strings.HasSuffix(s[v.from:v.to], "}")
}

// isNames reports whether a value is a list of names in YAML's flow style: secret: [status, secret].
func (v text) isNames(s string) bool {
	list, isList := strings.CutPrefix(s[v.from:v.to], "[")
	if !isList || v.quote != "" || !strings.HasSuffix(list, "]") {
		return false
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
		if !isObjectName(strings.TrimSpace(name)) {
			return false
		}
	}
	return true
}

// leading matches a reference at the start of a text.
var leading = regexp.MustCompile(`^(\$\$?\([^()]*\)|\$\{\{[^{}]*\}\}|\$\$?\{[^{}]*\}|\{\{[^{}]*\}\}|<%[^%]*%>)`)

// referredLogin matches what follows the user in a data source's name whose password is a reference, too:
// $(USER):$(PASSWORD)@tcp(db:3306)/shop.
var referredLogin = regexp.MustCompile(`^:(\$\([\w.-]+\)|\$\{[\w.-]+\})@`)

// head returns the value's first word, or a quoted value completely.
func (v text) head(s string) string {
	value := s[v.from:v.to]
	if v.quote == "" {
		if isLookUp(value) || indexed.MatchString(value) {
			return value
		}
		ends := " \t&;,\"'}])"
		if value != "" && strings.IndexByte("${<%", value[0]) >= 0 { // a reference has its own brackets
			if r := leading.FindString(value); r != "" {
				rest := value[len(r):]
				if referredLogin.MatchString(rest) {
					return r
				}
				if i := strings.IndexAny(rest, ends); i >= 0 {
					rest = rest[:i]
				}
				if isMixed(rest) && !leading.MatchString(rest) {
					return value[:len(r)+len(rest)]
				}
				return r
			}
			ends = " \t&;,\"'"
		}
		if i := strings.IndexAny(value, ends); i > 0 {
			return value[:i]
		}
	}
	return value
}

// value finds the value after a name and its separator.
func (a *assigned) value() (text, bool) {
	s, i := a.s, a.to
	if strings.HasSuffix(s[:a.from], "${") {
		return a.fallback()
	}
	if a.from > 0 && s[a.from-1] == '$' { // a variable; in PHP and the like, one that is assigned
		if strings.HasSuffix(s[:a.from-1], "set ") {
			return a.inQuotes(i)
		}
		rest, assigns := strings.CutPrefix(strings.TrimLeft(s[i:], " "), "=")
		if !assigns || a.from > 1 && isQuote(s[a.from-2]) {
			return text{}, false
		}
		v, ok := valueAt(s, len(s)-len(rest))
		return v, ok && (v.quote != "" || isLookUp(s[v.from:v.to]))
	}
	for i < len(s) && (s[i] == '\\' || isQuote(s[i]) || s[i] == ']') && i-a.to < 8 {
		i++
	}
	closed := i > a.to
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	if i == len(s) {
		return text{}, false
	}
	if !closed && a.isElement() {
		if end := strings.IndexAny(s[i:min(len(s), i+maxGap)], "<>"); end >= 0 && s[i+end] == '>' && s[i+end-1] != '/' {
			return inTag(s, i+end+1)
		}
	}
	if m := explicit.FindStringIndex(s[i:min(len(s), i+maxGap)]); m != nil && a.isExplicit() {
		return valueAt(s, i+m[1])
	}
	if sep := s[i:min(len(s), i+3)]; strings.EqualFold(sep, "%3d") || strings.EqualFold(sep, "%3a") {
		return valueAt(s, i+3)
	}
	switch c := s[i]; {
	case c == ':' || c == '=' || c == '?' || c == '+':
		return a.separated(i, closed)
	case c == '>' && closed:
		return inTag(s, i+1)
	case c == ',' && closed && s[a.from:a.to] == "secrets": // Kubernetes' resource, in an expression
		return text{}, false
	case c == ',' && closed && s[i-1] != '`', c == '(':
		return a.inQuotes(i + 1)
	case i > a.to && a.flag && a.command && c != '-':
		return valueAt(s, i)
	case c == ',' && a.from > 0 && s[a.from-1] == '{': // an Erlang term
		return a.inQuotes(i + 1 + len(s[i+1:]) - len(strings.TrimLeft(s[i+1:], " <")))
	case c == '\n' && i+1 < len(s) && !closed && isPasswordWord(s[a.from:a.to]) && strings.HasPrefix(strings.TrimLeft(s[i:], " \t\n"), "'"):
		return a.inQuotes(i + len(s[i:]) - len(strings.TrimLeft(s[i:], " \t\n"))) // SQL
	case i > a.to && !closed && !a.quoted:
		return a.spaced(i)
	}
	return text{}, false
}

// explicit matches what separates an explicit key of YAML from its value: ? password, and on the next line : x.
var explicit = regexp.MustCompile(`^(#.*)?\r?\n[ \t]*:(\s)`)

// isExplicit reports whether the name is an explicit key of YAML.
func (a *assigned) isExplicit() bool {
	before := strings.TrimRight(a.s[max(0, a.from-maxGap):a.from], " \t\"'")
	return strings.HasSuffix(before, "?") && (len(before) == 1 || strings.IndexByte(" \t\n-", before[len(before)-2]) >= 0)
}

// fallback finds the default of an unset variable: ${PASSWORD:-x}, ${PASSWORD:x}.
func (a *assigned) fallback() (text, bool) {
	s, i := a.s, a.to
	if s[a.from-1] != '{' || i >= len(s) || s[i] != ':' {
		return text{}, false
	}
	if i++; i < len(s) && strings.IndexByte("-=", s[i]) >= 0 {
		i++
	}
	end := strings.IndexByte(s[i:min(len(s), i+maxURL)], '}')
	return text{from: i, to: i + max(end, 0)}, end > 0
}

// inQuotes finds a value that must be quoted.
func (a *assigned) inQuotes(i int) (text, bool) {
	v, ok := valueAt(a.s, i)
	return v, ok && v.quote != ""
}

func isPasswordWord(name string) bool {
	name = strings.ToLower(name)
	return endsWithAny(name, "password", "passwd", "passphrase", "requirepass", "masterauth", "auth_pass")
}

// separated finds the value after a separator: one of : = := => ?= +=, not ==.
func (a *assigned) separated(i int, closed bool) (text, bool) {
	s, from := a.s, i
	for i < len(s) && strings.IndexByte(":=?+>~", s[i]) >= 0 && i-from < 3 {
		i++
	}
	sep := s[from:i]
	switch {
	case !strings.ContainsAny(sep, ":="), sep == "==", sep == "===", sep == "=~", sep == "?":
		return text{}, false
	case sep[0] == ':' && !a.startsValue(i, closed):
		return text{}, false
	}
	v, ok := valueAt(s, i)
	if ok && v.block && (sep[0] == '=' || closed) {
		if rest := strings.TrimLeft(s[v.from:], " \t\r\n"); rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			return valueAt(s, len(s)-len(rest))
		}
	}
	return v, ok
}

// startsValue reports whether the colon after the name is a separator, and not part of a URL, an image, an ARN
// or a sentence.
func (a *assigned) startsValue(i int, closed bool) bool {
	s := a.s
	spaced := i == len(s) || s[i] <= ' ' || isQuote(s[i])
	if a.from > 0 && !spaced && (s[a.from-1] == '/' || s[a.from-1] == ':' || s[a.from-1] == '@') {
		return false
	}
	if closed || a.quoted || a.command {
		return true
	}
	before := s[lineBegin(s, a.from):a.from]
	if prefix, found := strings.CutSuffix(before, "/"); found { // as in annotations: example.com/password
		before = prefix[:strings.LastIndexAny(prefix, " \t\"'{,[")+1]
	}
	before = strings.TrimRight(before, " \t-\"'/{,[#;!*")
	if a.to-a.from >= maxName && isNameByte(s[a.from-min(a.from, 1)]) { // only the end of the name
		return true
	}
	return before == "" || a.escaped() || strings.HasSuffix(before, "export") ||
		spaced && a.inFlow() || a.inStruct()
}

// escaped reports whether the name follows an escaped line end, as in a quoted file.
func (a *assigned) escaped() bool {
	return endsWithAny(strings.TrimRight(a.s[max(0, a.from-maxGap):a.from], " -\"'\\"), `\n`, `\r`, `\t`)
}

// printed matches a struct or a map as Go prints it, up to one of its fields: {Host:db Password:
var printed = regexp.MustCompile(`(?:\{|\bmap\[)(\w+:[^\s{}\[\]]* )*$`)

// inStruct reports whether the name is a field of a struct, or a key of a map, as Go prints it.
func (a *assigned) inStruct() bool {
	return printed.MatchString(a.s[max(a.from-maxGap, lineBegin(a.s, a.from)):a.from])
}

// inFlow reports whether the name is in a one-line YAML map: {user: app, password: x}.
func (a *assigned) inFlow() bool {
	line := a.s[lineBegin(a.s, a.from):a.from]
	before := strings.TrimRight(line, " \t")
	return (strings.HasSuffix(before, "{") || strings.HasSuffix(before, ",")) && (strings.Contains(line, "{") || len(line) == maxLine)
}

// valueAt finds the value at or after i on the same line: a quoted text, or else the rest of the line with its
// continuations. An empty value, or YAML's | and >, means a block below.
func valueAt(s string, i int) (text, bool) {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	if i == len(s) {
		return text{}, false
	}
	delimiter := i
	for delimiter < len(s) && s[delimiter] == '\\' {
		delimiter++
	}
	if delimiter < len(s) && isQuote(s[delimiter]) {
		if three := strings.Repeat(s[delimiter:delimiter+1], 3); delimiter == i && strings.HasPrefix(s[i:], three) {
			delimiter += 2
		}
		return inDelimiters(s, i, delimiter+1), true
	}
	here := i
	if strings.HasPrefix(s[i:], "$(cat <<") {
		here += len("$(cat ")
	}
	if strings.HasPrefix(s[here:], "<<") {
		if v, ok := inHeredoc(s, here); ok {
			return v, true
		}
	}
	end := lineEnd(s, i)
	value := strings.TrimRight(s[i:end], " \t\r")
	if opens, literal := opensBlock(value); opens && (end < len(s) || !isProperty(value)) {
		v := text{from: end, to: end, block: true, literal: literal}
		if value != "" && !literal {
			v.rest = i
		}
		return v, end < len(s)
	}
	if value[0] == '[' {
		end = listEnd(s, i, end)
		value = strings.TrimRight(s[i:end], " \t\r")
	}
	for strings.HasSuffix(value, `\`) && end < len(s) { // the line continues
		end = lineEnd(s, end+1)
		value = strings.TrimRight(s[i:end], " \t\r")
	}
	return text{from: i, to: i + len(value)}, true
}

// opensBlock reports whether the rest of a line lets a value begin on the next one: it is empty, a comment, or
// YAML's | or >, which take the lines literally. YAML allows anchors, tags and a comment there.
func opensBlock(value string) (opens, literal bool) {
	for isProperty(value) {
		i := strings.IndexAny(value, " \t")
		if i < 0 {
			return true, false
		}
		value = strings.TrimLeft(value[i:], " \t")
	}
	if value == "" || strings.HasPrefix(value, "# ") || strings.HasPrefix(value, "// ") {
		return true, false
	}
	if value[0] != '|' && value[0] != '>' {
		return false, false
	}
	rest := strings.TrimLeft(value[1:], "+-123456789")
	trimmed := strings.TrimLeft(rest, " \t")
	literal = len(value)-len(rest) <= 3 && (rest == "" || trimmed != rest && trimmed[0] == '#')
	return literal, literal
}

// isProperty reports whether a value starts like an anchor or a tag of YAML.
func isProperty(value string) bool {
	return len(value) > 1 && (value[0] == '&' || value[0] == '!') && (isWordByte(value[1]) || value[1] == '!')
}

// maxList bounds a list in YAML's flow style or in TOML, in bytes.
const maxList = 4 << 10

// listEnd returns the end of a list of plain values that starts at i and continues after the line that ends at
// end, or else end.
func listEnd(s string, i, end int) int {
	rest := s[i:min(len(s), i+maxList)]
	n := strings.IndexAny(rest[1:], "[]{}")
	if n < 0 || rest[1+n] != ']' || i+1+n < end {
		return end
	}
	return i + n + 2
}

// inDelimiters returns the value after an opening delimiter, a quote with any backslashes before it, up to the
// same delimiter, or to the end of the text if that is missing.
func inDelimiters(s string, from, begin int) text {
	quote := s[from:begin]
	v := text{from: begin, to: len(s), quote: quote}
	for at := begin; at < len(s); {
		n := strings.Index(s[at:], quote)
		if n < 0 {
			break
		}
		at += n
		if quote == "'" && strings.HasPrefix(s[at:], "''") && at > begin { // YAML and SQL write ' in a text like this
			at += 2
			continue
		}
		if len(quote) > 1 || slashesBefore(s, at, begin)%2 == 0 {
			v.to = at
			break
		}
		at++
	}
	return v
}

func slashesBefore(s string, at, from int) (n int) {
	for at-n > from && s[at-n-1] == '\\' {
		n++
	}
	return n
}

// maxLine bounds the search for the start of a line, in bytes.
const maxLine = 1 << 10

func lineBegin(s string, i int) int {
	from := max(0, i-maxLine)
	return from + strings.LastIndexByte(s[from:i], '\n') + 1
}

func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s)
}

// maxGap is the largest distance, in bytes, between a value and a name that is itself a value: - name: TOKEN,
// value: x.
const maxGap = 160

// paired finds the value of a pair: {name: TOKEN, value: x}, <add key="Token" value="x"/>.
func (t *search) paired(from, to int) (text, bool) {
	s := t.s
	if path := s[max(0, from-maxGap):from]; strings.HasSuffix(path, "/") && t.lines { // of a JSON patch in YAML
		path = strings.TrimRight(path[:strings.LastIndexAny(path, " \t\n\"'")+1], " \"'")
		if strings.HasSuffix(path, "path:") {
			return t.pairedLines(from)
		}
	}
	before := strings.TrimRight(s[max(0, from-16):from], "\"'\\ \t\n:=>")
	if anchor := strings.LastIndexByte(before, '&'); anchor > 0 && isProperty(before[anchor:]) && !strings.ContainsAny(before[anchor:], " \t\n") {
		before = strings.TrimRight(before[:anchor], " \t:")
	}
	if before == s[max(0, from-16):from] || !endsWithAny(before, "name", "key", "Name", "Key") {
		return text{}, false
	}
	if strings.HasPrefix(strings.TrimLeft(s[to:min(len(s), to+maxGap)], " \t\n"), "</") {
		return inElement(s, from, to)
	}
	rest := s[to:min(len(s), to+maxGap)]
	i := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("\"'\\,; \t\r\n/", r) })
	if i < 0 {
		i = len(rest)
	}
	for _, word := range pairValues {
		if !strings.HasPrefix(rest[i:], word) {
			continue
		}
		at := to + i + len(word)
		for at < len(s) && strings.IndexByte("\"'\\ ", s[at]) >= 0 {
			at++
		}
		if at < len(s) && (s[at] == ':' || s[at] == '=') {
			return valueAt(s, at+1)
		}
	}
	if v, ok := t.pairedBefore(from); ok || !t.lines {
		return v, ok
	}
	return t.pairedLines(from)
}

// pairedBefore finds the value of a pair that is before its name on the same line: {value: x, name: TOKEN}, <add
// value="x" key="Token"/>.
func (t *search) pairedBefore(from int) (text, bool) {
	begin := max(0, from-maxGap)
	open := strings.LastIndexAny(t.s[begin:from], "{}<>\n")
	if open < 0 || t.s[begin+open] != '{' && t.s[begin+open] != '<' {
		return text{}, false
	}
	for i := begin + open; i < from; i++ {
		n := strings.IndexAny(t.s[i:from], "{, \t")
		if n < 0 {
			break
		}
		i += n
		if n, ok := isFieldOf(t.s[i+1:from], pairValues); ok {
			v, ok := valueAt(t.s, i+1+n)
			if v.quote == "" && ok && !v.block {
				v.to = v.from + len(v.head(t.s))
			}
			return v, ok && !v.block
		}
	}
	return text{}, false
}
