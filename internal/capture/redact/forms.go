package redact

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// form is a place of credentials without a name before it, in files and in command lines of programs. It is
// searched for near its word: on the same line, or in the lines below as well.
type form struct {
	word  string
	below bool
	of    *regexp.Regexp // its first group is the credential
}

// accounts matches user:password at the start of a line, in quotes, or after echo.
var accounts = regexp.MustCompile(`(?m)(?:^\s*(?:- )?|["']|\becho +(?:-\w+ +)*)[\w.@-]{1,64}:([^\s"'|:]{2,})\s*["']?(?:$|\s*\|)`)

// piped matches the input that a shell pipes to a program that reads a password.
var piped = regexp.MustCompile(`\b(?:echo|printf +["']?%s(?:\\n)?["']?) +(?:-\w+ +)*["']?([^\s"'|]+)["']?\s*\|`)

var forms = []form{
	{"chpasswd", true, accounts},
	{"pgpass", false, regexp.MustCompile(`[\w.*-]+:(?:\d{1,5}|\*):[^\s:"']+:[^\s:"']+:([^\s"':]+)`)}, // PostgreSQL's documentation, 34.16
	{"from-literal", false, regexp.MustCompile(`--from-literal[= ]["']?[\w.-]+=["']?([^\s"']+)`)},    // kubectl create secret
	{"kinit", false, piped}, {"sudo -S", false, piped}, {"--with-token", false, piped},
	{"set password for", true, regexp.MustCompile(`(?i)set password for\s+\S+\s*=\s*(?:\w+\s*\()?\s*'([^']+)'`)}, // MySQL
	{"+@", false, regexp.MustCompile(`\s[>#]([^\s"']+)`)},                                                        // Redis' ACL
	{"~*", false, regexp.MustCompile(`\s[>#]([^\s"']+)`)},
}

// maxForm is the number of bytes searched before and after a form's word.
const maxForm = 1 << 10

// form finds a form's credentials near its word. It returns the end of the searched part.
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

// identifiedBy matches what is between IDENTIFIED and a password in SQL.
var identifiedBy = regexp.MustCompile(`^(?i:\s+with\s+[\w"']+)?\s+(BY|(?i:by|as))\s+(?i:password\s+)?`)

// statement matches the SQL statements that have an IDENTIFIED BY, as opposed to a sentence.
var statement = regexp.MustCompile(`(?i)\b(user|role|grant|connect|link)\b`)

// identified returns the password of IDENTIFIED BY and IDENTIFIED WITH plugin BY, whose first word ends at end.
func identified(s string, end int) (span, bool) {
	head := identifiedBy.FindStringSubmatch(s[end:min(len(s), end+128)])
	if head == nil {
		return span{}, false
	}
	v, ok := valueAt(s, end+len(head[0]))
	if ok && v.quote == "" {
		v.to = v.from + len(v.head(s))
		ok = head[1] == "BY" // as opposed to: identified by name
	}
	if head[1] != "BY" && (v.quote == "`" || !statement.MatchString(s[max(0, end-256):end])) {
		return span{}, false
	}
	return span{v.from, v.to, "password"}, ok && !v.block && says(credentialName, s[v.from:v.to])
}

// dataURL returns the base64 part of a data URL (RFC 2397), which Ignition uses for files.
func dataURL(s string, from int) (span, bool) {
	to := from
	for to < len(s) && (isBase64(rune(s[to])) || strings.IndexByte("=-_%", s[to]) >= 0) {
		to++
	}
	return span{from, to, "data"}, hidesWhole(unescaped(s[from:to]))
}

// escapedURL returns an escaped URL with a password inside another URL; its %3A%2F%2F ends at end.
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

// unescaped decodes percent-encoding and leaves invalid escapes alone.
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

// directives are words in programs' settings that a name and its value follow, separated by spaces.
var directives = set(`proxy_set_header add_header fastcgi_param uwsgi_param set-header add-header setenv env set
	header requestheader more_set_headers grpc_set_header`)

// spaced finds the value of a name that only a space separates from it: a quoted password, as in SQL; a single
// word that ends the line, as in Redis files; or a word after a login, as in .netrc. Other names must start the
// line or follow a directive, and the value must not read like a word.
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
	if isPassword && n > 1 && (before[n-2] == "login" || before[n-2] == "account" || before[n-2] == "machine") {
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
	case name == "auth-pass" && strings.Count(value, " ") == 1: // Redis Sentinel puts the server's name first
		v.from += strings.IndexByte(value, ' ') + 1
		return v, true
	case v.quote == "" && strings.ContainsAny(value, " \t"):
		return text{}, false
	case name == "insecure-password", name == "auth" && isAccount(value): // HAProxy
		return v, true
	case n > 1 && before[n-1][0] == '-' && before[n-2] == "set": // fish
		return v, isMixed(value)
	case n > 0 && !(n < 4 && directives[strings.ToLower(strings.TrimLeft(before[n-1], "#$"))]) || n == 0 && !a.lines:
		return text{}, false
	case isPassword:
		return v, true
	case v.quote != "" && strings.Trim(strings.TrimLeft(s[min(len(s), v.to+1):lineEnd(s, v.to)], `"'`), "; \t\r") != "":
		return text{}, false
	}
	return v, isMixed(value)
}

// isMixed reports whether a value is neither a word nor an object's name.
func isMixed(s string) bool {
	return len(s) >= 8 && !isObjectName(s) && (strings.ContainsAny(s, "0123456789") || strings.ToLower(s[1:]) != s[1:])
}

// looksRandom reports whether a value is unlikely to be a word: it is long, and has digits and capitals.
func looksRandom(s string) bool {
	return len(s) >= 16 && strings.ContainsAny(s, "0123456789") && strings.ToLower(s) != s && !strings.Contains(s, " ")
}

// heredoc matches the start of a multi-line text in shells and Terraform.
var heredoc = regexp.MustCompile(`^<<[-~]?["']?(\w+)["']?\s*\n`)

// inHeredoc returns the value that starts at i with <<EOF.
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

// maxPair is the number of lines between the name and the value of a pair in YAML.
const maxPair = 16

// pairedLines finds the value of a YAML pair whose name is at from, on another line of the same element.
func (t *search) pairedLines(from int) (text, bool) {
	s := t.s
	begin := lineBegin(s, from)
	if from-begin > maxGap {
		return text{}, false
	}
	column, first := fieldColumn(s, begin)
	for at, lines := begin, 0; !first && at > 0 && lines < maxPair; lines++ { // up to the element's first line
		at = lineBegin(s, at-1)
		var other int
		if other, first = fieldColumn(s, at); other < column && !isBlank(s, at) {
			break
		}
		if v, ok := pairLine(s, at, column); ok {
			return v, true
		}
		first = first && other == column
	}
	for at, lines := lineEnd(s, from)+1, 0; at < len(s) && lines < maxPair; lines++ {
		other, another := fieldColumn(s, at)
		if (other < column || another && other == column) && !isBlank(s, at) {
			break
		}
		if v, ok := pairLine(s, at, column); ok {
			return v, true
		}
		if n := min(len(s), at+column); other == column && slices.ContainsFunc(pairSpares, func(name string) bool { return strings.HasPrefix(s[n:], name+":") }) {
			break // a label requirement, or a toleration
		}
		at = lineEnd(s, at) + 1
	}
	return text{}, false
}

// isBlank reports whether the line at i is empty or a comment.
func isBlank(s string, i int) bool {
	content := strings.TrimSpace(s[i:lineEnd(s, i)])
	return content == "" || content[0] == '#'
}

// fieldColumn returns the column of a YAML line's field, after the dashes of lists; first reports whether there
// are any.
func fieldColumn(s string, begin int) (column int, first bool) {
	column = indentation(s, begin)
	for strings.HasPrefix(s[begin+column:], "- ") {
		first = true
		column += 1 + indentation(s, begin+column+1)
	}
	return column, first
}

// pairLine finds a pair's value in a line whose field is in the column.
func pairLine(s string, at, column int) (text, bool) {
	if other, _ := fieldColumn(s, at); other != column {
		return text{}, false
	}
	from := at + column
	n, ok := isFieldOf(s[from:lineEnd(s, from)], pairValues)
	if !ok {
		return text{}, false
	}
	return valueAt(s, from+n)
}
