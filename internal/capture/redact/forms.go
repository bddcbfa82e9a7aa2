package redact

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// form is a place of credentials in files and command lines of programs, which has no name before it. It is looked
// for where the word stands: on its line, or in the lines below as well.
type form struct {
	word  string
	below bool
	of    *regexp.Regexp // its first group is the credential
}

// account finds user:password at the begin of a line, in quotes, or behind echo.
var accounts = regexp.MustCompile(`(?m)(?:^\s*(?:- )?|["']|\becho +(?:-\w+ +)*)[\w.@-]{1,64}:([^\s"'|:]{2,})\s*["']?(?:$|\s*\|)`)

// piped finds what a shell gives to a program that reads a password.
var piped = regexp.MustCompile(`\b(?:echo|printf +["']?%s(?:\\n)?["']?) +(?:-\w+ +)*["']?([^\s"'|]+)["']?\s*\|`)

var forms = []form{
	{"chpasswd", true, accounts},
	{"pgpass", false, regexp.MustCompile(`[\w.*-]+:(?:\d{1,5}|\*):[^\s:"']+:[^\s:"']+:([^\s"':]+)`)}, // PostgreSQL's documentation, 34.16
	{"from-literal", false, regexp.MustCompile(`--from-literal[= ]["']?[\w.-]+=["']?([^\s"']+)`)},    // kubectl create secret
	{"kinit", false, piped}, {"sudo -S", false, piped}, {"--with-token", false, piped},
	{"+@", false, regexp.MustCompile(`\s[>#]([^\s"']+)`)}, // Redis' ACL
	{"~*", false, regexp.MustCompile(`\s[>#]([^\s"']+)`)},
}

// maxForm is how many bytes before and behind a form's word are looked at.
const maxForm = 1 << 10

// form finds what a form has near its word. It returns up to where it has looked.
func (t *search) form(f *form, end int) int {
	from := max(end-maxForm, lineBegin(t.s, end))
	to := min(lineEnd(t.s, end), end+maxForm)
	if f.below {
		to = min(len(t.s), end+maxForm)
	}
	for _, at := range f.of.FindAllStringSubmatchIndex(t.s[from:to], -1) {
		if value := t.s[from+at[2] : from+at[3]]; says(credentialName, value) {
			t.found = append(t.found, span{from + at[2], from + at[3], "password"})
		}
	}
	return to
}

// plugin is what stands between IDENTIFIED and a password in SQL.
var plugin = regexp.MustCompile(`^(?i:[\w"']+ +(?:by|as) +)?(?i:password +)?`)

// identified is the span of the password of IDENTIFIED BY and IDENTIFIED WITH plugin BY, which end at end.
func identified(s string, end int) (span, bool) {
	before := s[:end]
	with := strings.EqualFold(before[max(0, end-len("with ")):], "with ")
	head := plugin.FindString(s[end:min(len(s), end+128)])
	if with != strings.Contains(strings.ToLower(head), " ") {
		return span{}, false
	}
	v, ok := valueAt(s, end+len(head))
	if ok && v.quote == "" {
		v.to = v.from + len(v.head(s))
		ok = strings.HasSuffix(s[:v.from], "BY ") // rather than: identified by name
	}
	return span{v.from, v.to, "password"}, ok && !v.block && says(credentialName, s[v.from:v.to])
}

// dataURL is the span of base64 in a URL with data (RFC 2397), as Ignition has files.
func dataURL(s string, from int) (span, bool) {
	to := from
	for to < len(s) && (isBase64(rune(s[to])) || strings.IndexByte("=-_%", s[to]) >= 0) {
		to++
	}
	return span{from, to, "data"}, hidesWhole(unescaped(s[from:to]))
}

// escapedURL is the span of a URL that is escaped for another one and has a password; its %3A%2F%2F ends at end.
func escapedURL(s string, end int) (span, bool) {
	from, to := end-len("%3a%2f%2f"), end
	for from > 0 && (isWordByte(s[from-1]) || s[from-1] == '+') {
		from--
	}
	for to < len(s) && to-end < maxURL && (isWordByte(s[to]) || strings.IndexByte("%-_.~+", s[to]) >= 0) {
		to++
	}
	return span{from, to, "url"}, holdsCredential(unescaped(s[from:to]), asText)
}

// unescaped decodes percent-encoding, and leaves what is none.
func unescaped(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(c))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// directives are words of programs' settings behind which a name and its value stand, with only a space between.
var directives = set(`proxy_set_header add_header fastcgi_param uwsgi_param set-header add-header setenv env set
	header requestheader more_set_headers grpc_set_header`)

// spaced is the value of a name that only a space is before: of a password, in quotes, as in SQL, or one word that
// ends the line, as in files of Redis, or that follows a login, as in .netrc. Other names must begin the line, or
// follow a directive, and the value must not read like a word.
func (a *assigned) spaced(i int) (text, bool) {
	s := a.s
	v, ok := valueAt(s, i)
	if !ok || v.block {
		return text{}, false
	}
	name := strings.ToLower(s[a.from:a.to])
	isPassword := isPasswordWord(name)
	if isPassword && v.quote != "" {
		return v, true
	}
	begin := max(a.from-maxGap, lineBegin(s, a.from))
	before := strings.Fields(s[begin:a.from])
	n := len(before)
	if isPassword && n > 1 && (before[n-2] == "login" || before[n-2] == "account") {
		if end := strings.IndexAny(s[v.from:v.to], " \t"); end > 0 {
			v.to = v.from + end
		}
		return v, true
	}
	if v.quote == "" {
		v.to -= len(s[v.from:v.to]) - len(strings.TrimRight(s[v.from:v.to], "; "))
	}
	value := s[v.from:v.to]
	switch {
	case name == "auth-pass" && strings.Count(value, " ") == 1: // Redis Sentinel names the server before
		v.from += strings.IndexByte(value, ' ') + 1
		return v, true
	case v.quote == "" && strings.ContainsAny(value, " \t"):
		return text{}, false
	case name == "insecure-password", name == "auth" && isAccount(value): // HAProxy
		return v, true
	case n > 0 && !(n < 4 && directives[strings.ToLower(strings.TrimLeft(before[n-1], "#$"))]) || n == 0 && !a.lines:
		return text{}, false
	case isPassword:
		return v, true
	case v.quote != "" && strings.Trim(strings.TrimLeft(s[min(len(s), v.to+1):lineEnd(s, v.to)], `"'`), "; \t\r") != "":
		return text{}, false
	}
	return v, isMixed(value)
}

// isMixed tells a value that is neither a word nor the name of an object.
func isMixed(s string) bool {
	return len(s) >= 8 && !isObjectName(s) && (strings.ContainsAny(s, "0123456789") || strings.ToLower(s[1:]) != s[1:])
}

// looksRandom tells a value that nobody would write as a word: it is long, and has digits and capitals.
func looksRandom(s string) bool {
	return len(s) >= 16 && strings.ContainsAny(s, "0123456789") && strings.ToLower(s) != s && !strings.Contains(s, " ")
}

// heredoc begins a text over several lines in shells and Terraform.
var heredoc = regexp.MustCompile(`^<<[-~]?["']?(\w+)["']?\s*\n`)

// inHeredoc is the value that begins at i with <<EOF.
func inHeredoc(s string, i int) (text, bool) {
	m := heredoc.FindStringSubmatch(s[i:min(len(s), i+80)])
	if m == nil {
		return text{}, false
	}
	from := i + len(m[0])
	for at := from; at < len(s); at = lineEnd(s, at) + 1 {
		if strings.TrimSpace(s[at:lineEnd(s, at)]) == m[1] {
			return text{from: from, to: max(from, at-1), quote: m[1]}, true
		}
	}
	return text{from: from, to: len(s), quote: m[1]}, true
}

// isPairValue tells a line's field that may be the value of a pair, and where that begins.
func isPairValue(content string) (at int, ok bool) {
	i := slices.IndexFunc(pairValues, func(word string) bool { return strings.HasPrefix(content, word+":") })
	if i < 0 {
		return 0, false
	}
	return len(pairValues[i]) + 1, true
}

// pairedLines finds in YAML the value of a pair whose name is at from, on one of the lines of the same element
// before or behind.
func (t *search) pairedLines(from, to int) (text, bool) {
	s := t.s
	begin := lineBegin(s, from)
	if from-begin > maxGap {
		return text{}, false
	}
	first := strings.HasPrefix(strings.TrimLeft(s[begin:from], " "), "- ")
	for at, lines := begin, 0; !first && at > 0 && lines < 4; lines++ { // up to the element's first
		at = lineBegin(s, at-1)
		v, found, ends := pairLine(s, at, true)
		if found {
			return v, true
		}
		first = ends
	}
	for at, lines := lineEnd(s, to)+1, 0; at < len(s) && lines < 4; lines++ {
		v, found, ends := pairLine(s, at, false)
		if found || ends {
			return v, found
		}
		at = lineEnd(s, at) + 1
	}
	return text{}, false
}

// pairLine looks at a line for a pair's value; ends says that the element has none beyond it.
func pairLine(s string, at int, back bool) (v text, found, ends bool) {
	end := lineEnd(s, at)
	content := strings.TrimLeft(s[at:end], " ")
	first := strings.HasPrefix(content, "- ")
	if content == "" || first && !back || !isField(strings.TrimRight(content, "\r")) {
		return text{}, false, true
	}
	content = strings.TrimPrefix(content, "- ")
	n, ok := isPairValue(content)
	if !ok {
		return text{}, false, first
	}
	v, ok = valueAt(s, end-len(content)+n)
	return v, ok && !v.block, first
}
