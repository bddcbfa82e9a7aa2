package redact

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// name looks for a value assigned to the name whose last byte is before end, by one rule for all syntaxes: a name,
// closing quotes and brackets, a separator (: = => := += ( , or white space), and a value in quotes or up to the end
// of the line. It returns the end of the name or of the value.
func (t *search) name(end int) int {
	s := t.s
	from, to := nameAround(s, end)
	name := strings.Trim(s[from:to], ".-")
	how := asFile
	if t.command {
		how = asCommand
	}
	facts := factsOf(name)
	kind := facts.kind.in(how)
	switch {
	case facts.container == credentialName && t.lines && t.fields(from, to, name, false):
		return to
	case (name == "Secret" || name == "SecretList") && t.isKind(from), strings.EqualFold(name, "stringData"):
		t.manifest()
		return to
	case kind == plainName || t.inSelector(from, to):
		return to
	case kind == credentialName && !t.command && !t.lines && strings.EqualFold(name, "secret"): // in a message, the Secret's name
		kind = refName
	}
	a := assigned{search: t, from: from, to: to, flag: s[from] == '-', quoted: from > 0 && isQuote(s[from-1])}
	v, ok := a.value()
	if !ok {
		v, ok = t.paired(from, to)
	}
	switch {
	case !ok:
		return to
	case v.block && kind >= manyName && t.fields(from, to, name, true):
		return to
	case v.block:
		return max(to, t.block(kind, from, v, name))
	case v.quote == "" && a.escaped():
		if i := strings.Index(v.in(s), `\n`); i > 0 {
			v.to = v.from + len(strings.TrimRight(s[v.from:v.from+i], `\r`))
		}
	}
	head := v.head(s)
	if i := strings.IndexAny(v.begin(s), " \t"); i > 0 && a.flag && v.quote == "" && s[to] == '=' && !strings.Contains(head, " ") { // the next flag
		v.to = v.from + max(i, len(head))
	}
	if a.flag && t.command && v.quote == "" && t.lines && shellPart.MatchString(head) || v.quote == "" && isMap(head) {
		return to // a redirection or a variable, or a map with names of its own
	}
	if says(kind, head) && !isPhrase(name, v.begin(s)) {
		t.found = append(t.found, span{v.from, v.to, name})
		return max(to, v.to)
	}
	return to
}

// isMap reports whether a value's first word begins a map with names of its own, or is a word in braces.
func isMap(head string) bool {
	return strings.HasPrefix(head, "{") && !strings.HasPrefix(head, "{{") && !schemed.MatchString(head) &&
		(len(head) == 1 || strings.ContainsAny(head, `:="'}`))
}

// schemed matches a password with its encoding before it: {noop}x, {SSHA}x.
var schemed = regexp.MustCompile(`(?i)^\{(?:noop|plain|cleartext|bcrypt|scrypt|pbkdf2|argon2|md\d|sha|ssha|smd5|crypt|cipher|aes|3?des|xor|x-)[\w@-]*\}[^\s,;}]`)

// shellPart matches a redirection, and a variable of a shell.
var shellPart = regexp.MustCompile(`^(\d?[<>].*|\$[a-z_]\w*)$`)

// selector matches the labels before one in the query of a metric or a log: {job="a",
var selector = regexp.MustCompile(`^\{(?:\s*\w+\s*(?:=|!=|=~|!~)\s*(?:"[^"]*"|'[^']*')\s*,)*\s*$`)

// inSelector reports whether the name is a label in the query of a metric or a log: x{job="a",token="b"}.
func (t *search) inSelector(from, to int) bool {
	if rest := strings.TrimLeft(t.s[to:min(len(t.s), to+8)], " "); rest == "" || rest[0] != '=' && rest[0] != '!' {
		return false
	}
	begin := max(lineBegin(t.s, from), from-maxGap*2)
	open := strings.LastIndexByte(t.s[begin:from], '{')
	end := strings.IndexByte(t.s[to:min(len(t.s), to+maxGap*2)], '}')
	if open < 0 || end < 0 {
		return false
	}
	open += begin
	before := strings.TrimRight(t.s[begin:open], " \t")
	return !endsWithAny(before, "=", `"`) && t.s[to] != ' ' && // as in HCL
		(begin == open || strings.IndexByte(" \t(:_", t.s[open-1]) >= 0 || isWordByte(t.s[open-1])) &&
		labels.MatchString(t.s[to:to+end+1]) && selector.MatchString(t.s[open:from])
}

// labels matches the rest of a selector after a label's name.
var labels = regexp.MustCompile(`^\s*(?:=|!=|=~|!~)\s*"[^"]*"\s*(?:,\s*\w+\s*(?:=|!=|=~|!~)\s*(?:"[^"]*"|'[^']*')\s*)*,?\s*\}$`)

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
	cost(to - from)
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

// text is the position of a value. quote is its delimiter; a block is on the lines below.
type text struct {
	from, to int
	quote    string
	block    bool
}

// in returns the value.
func (v text) in(s string) string {
	cost(v.to - v.from)
	return s[v.from:v.to]
}

// begin returns as much of the value as is judged where a text has many.
func (v text) begin(s string) string {
	v.to = min(v.to, v.from+maxValue)
	return v.in(s)
}

// maxValue is the number of bytes of a value that are judged.
const maxValue = 1 << 10

// leading matches a reference at the start of a text.
var leading = regexp.MustCompile(`^(\$\$?\([^()]*\)|\$\{\{[^{}]*\}\}|\$\$?\{[^{}]*\}|\{\{[^{}]*\}\}|<%[^%]*%>)`)

// referredLogin matches what follows the user in a data source's name whose password is a reference, too:
// $(USER):$(PASSWORD)@tcp(db:3306)/shop.
var referredLogin = regexp.MustCompile(`^:(\$\([\w.-]+\)|\$\{[\w.-]+\})@`)

// head returns the value's first word, or a quoted value completely.
func (v text) head(s string) string {
	if v.quote != "" {
		return v.in(s)
	}
	value := v.begin(s)
	if isLookUp(value) || strings.Contains(value, `["`) && indexed.MatchString(value) {
		return value
	}
	ends := " \t&;,\"'}])"
	if value != "" && strings.IndexByte("${<%", value[0]) >= 0 { // a reference has its own brackets
		if r := leading.FindString(value); r != "" {
			rest := value[len(r):]
			if i := strings.IndexAny(rest, ends); i >= 0 && !referredLogin.MatchString(rest) {
				rest = rest[:i]
			}
			if isMixed(rest) && !leading.MatchString(rest) && !referredLogin.MatchString(rest) {
				return value[:len(r)+len(rest)]
			}
			return r
		}
		ends = " \t&;,\"'"
	}
	if i := strings.IndexAny(value, ends); i > 0 {
		return value[:i]
	}
	return value
}

// value finds the value after a name and its separator.
func (a *assigned) value() (text, bool) {
	s, i := a.s, a.to
	switch {
	case strings.HasSuffix(s[:a.from], "${"):
		return a.fallback()
	case a.from > 0 && s[a.from-1] == '$': // a variable; in some languages, one that is assigned
		if name := s[a.from:i]; strings.HasPrefix(name, "http_") || strings.HasPrefix(name, "arg_") || strings.HasPrefix(name, "cookie_") {
			if v, ok := a.compared(); ok {
				return v, ok
			}
		}
		rest := strings.TrimLeft(s[i:], " ")
		sep := rest[:len(rest)-len(strings.TrimLeft(rest, "=!:|?"))]
		if sep == ":" {
			return text{}, false
		}
		if sep == "" && !strings.HasSuffix(s[:a.from-1], "set ") || a.from > 1 && isQuote(s[a.from-2]) {
			return text{}, false
		}
		v, ok := a.valueAt(len(s) - len(rest) + len(sep))
		isMixed := ok && isMixed(v.head(s))
		return v, ok && (v.quote != "" && (len(sep) < 2 || endsWithAny(sep, ":=", "|=", "?=") || isMixed) || isLookUp(v.begin(s)) || sep == "" && isMixed)
	}
	if i < len(s) && (s[i] == ')' || s[i] == ',') && a.from > 0 && s[a.from-1] == '(' {
		if v, ok := a.compared(); ok {
			return v, ok
		}
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
	if sep := s[i:min(len(s), i+3)]; strings.EqualFold(sep, "%3d") || strings.EqualFold(sep, "%3a") {
		return a.valueAt(i + 3)
	}
	switch c := s[i]; {
	case strings.HasPrefix(s[i:], "!=") || strings.HasPrefix(s[i:], "=="): // compared with a credential
		v, ok := a.valueAt(i + 2)
		return v, ok && v.quote != "" && (isMixed(v.begin(s)) || isPasswordWord(s[a.from:a.to]) && strings.Contains(s[a.from:a.to], "-")) // of FreeRADIUS
	case c == ':' || c == '=' || c == '?' || c == '+':
		return a.separated(i, closed)
	case strings.HasPrefix(s[i:], "||=") || strings.HasPrefix(s[i:], "<<<"): // in Ruby, and the input of a shell's command
		v, ok := a.valueAt(i + 3)
		return v, ok && !strings.HasPrefix(v.begin(s), "$(")
	case c == '>' && closed, (c == '>' || i > a.to) && opening.MatchString(s[max(0, a.from-maxGap):a.from]):
		return elementAt(s, a.to)
	case c == ',' && closed && s[a.from:a.to] == "secrets": // Kubernetes' resource, in an expression
		return text{}, false
	case c == ',' && (closed && s[i-1] != '`' || a.from > 0 && s[a.from-1] == '{'), c == '(':
		return a.called(i+1+len(s[i+1:])-len(strings.TrimLeft(s[i+1:], " <")), c == '(')
	case i > a.to && a.flag && a.command && c != '-':
		return a.valueAt(i)
	case i > a.to && a.flag && c != '-': // in a message
		v, ok := a.valueAt(i)
		if head := v.head(s); v.quote == "" && len(head) < maxValue {
			v.to = v.from + len(head)
		}
		return v, ok && !v.block && (v.quote != "" && closed || isMixed(strings.TrimRight(v.begin(s), ".,;)]")))
	case c == '\n' && isPasswordWord(s[a.from:a.to]) && strings.HasPrefix(strings.TrimLeft(s[i:], " \t\n"), "'"): // SQL
		return a.valueAt(len(s) - len(strings.TrimLeft(s[i:], " \t\n")))
	case i > a.to && !closed && !a.quoted:
		return a.spaced(i)
	}
	return text{}, false
}

// opening matches what is before the name of an element of XML, and content what is between it and the element's text.
var (
	opening = regexp.MustCompile(`<(?:[\w.-]{1,64}:)?$`)
	content = regexp.MustCompile(`^["']?\s*(?:[\w:.-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*')\s*)*>\s*(?:<!\[CDATA\[)?\s*`)
)

// elementAt finds the text of an element that is not in an XML document.
func elementAt(s string, i int) (text, bool) {
	begin := content.FindString(s[i:min(len(s), i+maxGap)])
	i += len(begin)
	end := s[i:min(len(s), i+maxURL)]
	n := strings.Index(end, "</")
	if cdata := strings.Index(end, "]]>"); cdata >= 0 && cdata < n {
		n = cdata
	}
	return text{from: i, to: i + n}, begin != "" && n > 0 && strings.IndexByte(end[:n], '<') < 0
}

// isKey reports whether a text in quotes is a name with a value of its own.
func isKey(s string, v text) bool {
	return strings.HasPrefix(strings.TrimLeft(s[min(len(s), v.to+len(v.quote)):], " "), ":")
}

// fallback finds the default of an unset variable: ${PASSWORD:-x}, ${PASSWORD:x}.
func (a *assigned) fallback() (text, bool) {
	s, i := a.s, a.to
	if i >= len(s) || s[i] != ':' {
		return text{}, false
	}
	if i++; i < len(s) && strings.IndexByte("-=", s[i]) >= 0 {
		i++
	}
	end := strings.IndexByte(s[i:min(len(s), i+maxURL)], '}')
	return text{from: i, to: i + max(end, 0)}, end > 0
}

func isPasswordWord(name string) bool {
	return endsWithAny(strings.ToLower(name), "password", "passwd", "passphrase", "requirepass", "masterauth", "auth_pass")
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
	case sep == ":" && typed.MatchString(s[i:min(len(s), i+maxGap)]):
		return a.valueAt(i + len(typed.FindString(s[i:min(len(s), i+maxGap)])) - 1)
	case sep[0] == ':' && !a.startsValue(i, closed):
		v, ok := a.valueAt(i)
		if v.quote == "" { // as FreeRADIUS writes names
			v.to, ok = v.from+len(v.head(s)), ok && !v.block && strings.Contains(s[a.from:a.to], "-")
		}
		return v, ok && sep == ":=" || sep == ":" && a.inMessage(v)
	}
	v, ok := a.valueAt(i)
	if sep == ":" && !closed && !a.lines && strings.Contains(s[a.from:a.to], ".") && className.MatchString(v.head(s)) { // module.secrets:Class
		return text{}, false
	}
	if ok && v.block && (sep[0] == '=' || closed) && strings.TrimSpace(s[i:v.from]) == "" {
		if rest := strings.TrimLeft(s[v.from:], " \t\r\n"); rest != "" && isQuote(rest[0]) {
			return a.valueAt(len(s) - len(rest))
		}
	}
	return v, ok
}

// typed matches the type of a variable, before its value: password: str = "x".
var typed = regexp.MustCompile(`^\s*&?(?:'\w+\s+)?(?:\w+\.)*(?:(?:Optional|Final|ClassVar)\[)*(?:[sS]tr|[sS]tring|bytes|SecretStr|Final|[aA]ny)\]*(?:\s*\|\s*\w+)*\??\s*=\s*(?:\w+\((?:default\s*=\s*)?)?["'\x60]`)

// className matches the name of a class.
var className = regexp.MustCompile(`^([A-Z][a-z]+){2,}$`)

// startsValue reports whether the colon after the name is a separator, and not part of a URL, an image, an ARN
// or a sentence.
func (a *assigned) startsValue(i int, closed bool) bool {
	s := a.s
	spaced := i == len(s) || s[i] <= ' ' || isQuote(s[i])
	if a.from > 0 && !spaced && strings.IndexByte("/:@", s[a.from-1]) >= 0 {
		return false
	}
	if closed || a.quoted || a.command || a.to-a.from >= maxName || invalid.MatchString(s[i:min(len(s), i+maxGap)]) { // of a long name, only the end is known
		return true
	}
	line := s[lineBegin(s, a.from):a.from]
	before := line
	if prefix, found := strings.CutSuffix(before, "/"); found { // as in annotations: example.com/password
		before = prefix[:strings.LastIndexAny(prefix, " \t\"'{,[")+1]
	}
	trimmed := strings.TrimRight(before, " \t")
	before = strings.TrimRight(before, " \t-\"'/{,[#;!*?")
	return before == "" || a.escaped() || strings.HasSuffix(before, "export") || // in a map on one line, and in a struct as Go prints it:
		endsWithAny(trimmed, "{", "[", "(", ",") && spaced && (strings.ContainsAny(line, "{[(") || len(line) == maxLine) ||
		isPrinted(line[max(0, len(line)-maxGap):]) || spaced && listed.MatchString(line[max(0, len(line)-maxGap):])
}

// invalid matches how Kubernetes shows a value in an error: spec.password: Invalid value: "x".
var invalid = regexp.MustCompile(`^ (?:Invalid|Unsupported|Duplicate) value: "`)

// escaped reports whether the name follows an escaped line end, as in a quoted file.
func (a *assigned) escaped() bool {
	return endsWithAny(strings.TrimRight(a.s[max(0, a.from-maxGap):a.from], " -\"'\\"), `\n`, `\r`, `\t`)
}

// isPrinted reports whether a text ends in a struct or a map as Go prints it, or in settings on one line, before one
// of the fields: {Host:db or =user:a,
func isPrinted(s string) bool {
	i := strings.LastIndexAny(s, "{[=")
	return i >= 0 && (s[i] != '[' || strings.HasSuffix(s[:i], "map")) && printed.MatchString(s[i+1:])
}

// listed matches fields on one line, before another one: user: x, password:
var listed = regexp.MustCompile(`^\s*(?:[\w.-]+: ?[^,\s]*, ?)+$`)

var printed = regexp.MustCompile(`^(\w+:[^\s{}\[\]]*[ ,])*$`)

// valueAt finds the value at or after i on the same line: a quoted text, or else the rest of the line with its
// continuations. An empty value, or YAML's | and >, means a block below.
func (t *search) valueAt(i int) (text, bool) {
	s := t.s
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
		v := inDelimiters(s, i, delimiter+1)
		if open := strings.LastIndex(v.in(s), "{{"); open >= 0 && !strings.Contains(s[v.from+open:v.to], "}}") { // quotes in a template
			if n := strings.Index(s[v.to:t.lineEnd(v.to)], "}}"); n >= 0 {
				n += v.to + len("}}")
				v.to = n + max(0, strings.Index(s[n:], v.quote))
			}
		}
		return v, true
	}
	end := t.lineEnd(i)
	value := strings.TrimRight(s[i:end], " \t\r")
	if opensBlock(value) {
		return text{from: end, to: end, block: true}, end < len(s)
	}
	for strings.HasSuffix(value, `\`) && end < len(s) { // the line continues
		end = t.lineEnd(end + 1)
		value = strings.TrimRight(s[i:end], " \t\r")
	}
	return text{from: i, to: i + len(value)}, true
}

// opener matches what lets a value begin on the next line: in YAML, or a here-document.
var opener = regexp.MustCompile(`^(?:[&!][\w!/:.-]*[ \t]*)?(?:[|>][-+0-9]{0,2}|(?:\$\(cat )?<<[-~]?["']?\w+["']?|[\[({])?[ \t]*`)

// opensBlock reports whether the rest of a line is an opener, and perhaps a comment.
func opensBlock(rest string) bool {
	if rest != "" && strings.IndexByte("&!|>$<[({#/", rest[0]) < 0 {
		return false
	}
	part := rest[:min(len(rest), maxName)]
	cost(len(part))
	rest = rest[len(opener.FindString(part)):]
	return rest == "" || strings.HasPrefix(rest, "# ") || strings.HasPrefix(rest, "// ")
}

// maxBlock is the number of lines of a block below a name.
const maxBlock = 200

// block redacts the lines below a name: those that are indented deeper, elements of a list, and those of a
// here-document. Lines with names of their own are judged by these. It returns the end of the redacted part.
func (t *search) block(kind kindOfName, from int, v text, name string) int {
	s := t.s
	indent := indentation(s, lineBegin(s, from))
	word := strings.Trim(s[lineBegin(s, v.from):v.from], " \t\r")
	word = strings.Trim(word[strings.LastIndexAny(word, "<-~")+1:], `"'`)
	doc := strings.Contains(s[from:v.from], "<<")
	begin, end := -1, v.from
	for lines := 0; end < len(s) && lines < maxBlock; lines++ {
		line := end + 1
		stop := t.lineEnd(min(line, len(s)))
		content := strings.TrimSpace(s[min(line, len(s)):stop])
		if doc && content == word || !doc && content != "" && !isAction(content) &&
			indentation(s, line) <= indent && !strings.HasPrefix(content, "- ") {
			break
		}
		if content != "" && begin < 0 && !isAction(content) && !strings.HasPrefix(content, "#") {
			begin = line + indentation(s, line)
			if !doc && isField(content) {
				return v.from
			}
		}
		end = stop
	}
	if begin < 0 || kind < manyName || !says(kind, s[begin:end]) {
		return v.from
	}
	t.found = append(t.found, span{begin, end, name})
	return end
}

// fields redacts the fields in lines below a name: of a container, credentials: or, in HCL, tokens {, or only the
// inlineValues of a credential. It reports whether there are any.
func (t *search) fields(from, to int, name string, inline bool) (found bool) {
	line := t.lineEnd(to)
	if rest := strings.Trim(t.s[to:line], " \t\r"); rest != ":" && rest != "{" && rest != "= {" {
		return false
	}
	indent, depth := indentation(t.s, lineBegin(t.s, from)), 0
	for lines := 0; line+1 < len(t.s) && lines < maxBlock; lines++ {
		begin := line + 1
		line = t.lineEnd(begin)
		at := indentation(t.s, begin)
		content := strings.TrimSpace(t.s[begin:line])
		i := strings.IndexAny(content, ":=")
		switch {
		case content == "":
			continue
		case at <= indent:
			return found
		case depth == 0:
			depth = at
		}
		if at != depth || i < 0 {
			continue
		}
		kind, field := credentialName, strings.TrimSpace(content[:i])
		switch {
		case inline && fieldTraits[field]&isInline == 0:
			continue
		case !inline && describing(field):
			kind = wordName
		}
		if v, ok := t.valueAt(begin + at + i + 1); ok && !v.block && v.to <= line && says(kind, v.head(t.s)) {
			t.found, found = append(t.found, span{v.from, v.to, name}), true
		}
	}
	return found
}

// action matches a line of a template that only controls others: {{- range .Values.pullSecrets }}.
var action = regexp.MustCompile(`^\{\{-? *(range|if|else|end|with)\b[^{}]*\}\}$`)

func isAction(line string) bool { return strings.HasPrefix(line, "{{") && action.MatchString(line) }

// isField reports whether a line has a name of its own.
func isField(content string) bool {
	name, rest, found := strings.Cut(strings.TrimPrefix(content, "- "), ":")
	return found && (rest == "" || rest[0] == ' ') && !strings.ContainsAny(name, " ")
}

func indentation(s string, i int) int {
	n := 0
	for i+n < len(s) && (s[i+n] == ' ' || s[i+n] == '\t') {
		n++
	}
	return n
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
	cost(v.to - v.from)
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
	from += strings.LastIndexByte(s[from:i], '\n') + 1
	cost(i - from)
	return from
}

// lineEnd returns the end of the line of a place. It remembers the last one, so that a long line is read once.
func (t *search) lineEnd(i int) int {
	if i < t.line.from || i > t.line.to || t.line.to == 0 {
		t.line = span{from: i, to: lineEnd(t.s, i)}
	}
	return t.line.to
}

func lineEnd(s string, i int) int {
	n := strings.IndexByte(s[i:], '\n')
	if n < 0 {
		n = len(s) - i
	}
	cost(n)
	return i + n
}

// maxGap is the largest distance, in bytes, between a value and a name that is itself a value.
const maxGap = 160
