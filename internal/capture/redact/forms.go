package redact

import (
	"regexp"
	"strconv"
	"strings"
)

// form is a place of credentials without a name before it, in files and in command lines of programs. It is
// searched for near its word: on the same line, or in the lines below as well.
type form struct {
	word  string
	below bool
	line  *regexp.Regexp // matches such a line, if not nil
	of    *regexp.Regexp // the group that matches is the credential
	mixed bool           // it has letters and digits, or is long and has letters of both cases
}

// accounts matches user:password at the start of a line, in quotes, or after echo.
var accounts = regexp.MustCompile(`(?m)(?:^\s*(?:- )?|["']|\becho +(?:-\w+ +)*)[\w.@-]{1,64}:([^\s"'|:]{2,})\s*["']?(?:$|\s*\|)`)

// piped matches what a shell gives to a program that reads a password: echo x |, (echo x; echo x) |, <<< x.
var piped = regexp.MustCompile(`<<<\s*(` + shellWord + `)|\b(?:echo|printf(?: +["']?[^\s"']*%s[^\s"']*["']?)?) +(?:-\w+ +)*(` + shellWord + `(?: +` + shellWord + `)*)\s*\||\(\s*(echo [^()|]+)\)\s*\|`)

// shellWord matches a word of a shell, in quotes or not.
const shellWord = `(?:"[^"]*"|'[^']*'|[^\s"'|;&)])+`

// account matches user:password before the server of a MySQL driver or of Oracle, scheme what is behind Authorization:
// Bearer or Basic, and signature one in a URL's query.
var (
	account   = regexp.MustCompile("[^\\s\"'`=:\\[\\]\\\\^*?]+:([^\\s\"'`=]+)@(?:tcp6?\\(|unix\\(|//|\\()")
	scheme    = regexp.MustCompile(`(?i)\b(?:bearer|basic)(?: |%20)([\w.~+=/:-]{7,}[\w=/+])`)
	signature = regexp.MustCompile(`(?i)[?&;][\w-]{0,32}(?:sig|signature)=([^&\s"'<>\\\x60]{16,})`)
)

// pgpass matches a line of .pgpass, aclRule a password of Redis' users, and userLogin a user with a password.
var (
	pgpass    = regexp.MustCompile(`[\w.*-]+:(?:\d{1,5}|\*):[^\s:"']+:[^\s:"']+:([^\s"':]+)`)
	aclRule   = regexp.MustCompile(`\s["']?[>#]([^\s"']+)`)
	aclLine   = regexp.MustCompile(`(?i)\b(?:user|setuser)\s+\S+(?:\s+["']?(?:on|off|nopass|reset\w*|all[a-z]+|[a-z-]+-payload|[~&%+(-]\S+|#[0-9a-f]{64})["']?)*\s+["']?>\S`)
	userLogin = regexp.MustCompile(`(?m)(?:^|[\s;-])user *= *["']?[\w.@-]+:([^\s"'/]+)["']?\s*$`)
)

var forms = []form{
	{word: "chpasswd", below: true, of: accounts},
	{word: "pgpass", of: pgpass}, // PostgreSQL's documentation, 34.16
	{word: "from-literal", of: regexp.MustCompile(`--from-literal[= ]["']?[\w.-]+=["']?([^\s"']+)`)}, // kubectl create secret
	{word: ":5432:", of: pgpass}, {word: ":*:*:", of: pgpass}, {word: "user ", line: aclLine, of: aclRule},
	{word: "oracle:thin:", of: regexp.MustCompile(`oracle:thin:\w+/([^@\s"']+)@`)},
	{word: "login=", of: regexp.MustCompile(`\blogin=[\w.-]+:([^\s"']+)`)},
	{word: "user=", of: userLogin}, {word: "user =", of: userLogin}, {word: "ident:", of: regexp.MustCompile(`(?i)ident: +["']?[\w.-]+:([^\s"']+)`)},
	{word: "= aq", of: regexp.MustCompile(`\bkey *= *(AQ[\w+/=]{36,})`)},                  // of Ceph
	{word: "user_", of: regexp.MustCompile(`\buser_[\w-]+="([^"]+)"`)},                    // of Kafka's login module
	{word: "secure_link_md5", of: regexp.MustCompile(`secure_link_md5\s+["']?([^"';]+)`)}, // of nginx
	{word: "password-stdin", of: piped}, {word: "passphrase-stdin", of: piped}, {word: "pass stdin", of: piped}, {word: "passin stdin", of: piped}, {word: "passwd -", of: piped},
	{word: "| passwd", of: piped}, {word: "|passwd", of: piped}, {word: "smbpasswd", of: piped}, {word: "kinit", of: piped}, {word: "sudo -S", of: piped}, {word: "--with-token", of: piped},
	{word: "login -", of: piped}, {word: "kv put", of: piped}, {word: "cryptsetup", of: piped}, {word: "passphrase-fd", of: piped}, {word: "<<<", line: regexp.MustCompile(`\b(?:passwd|openssl|gpg)\b`), of: piped},
	{word: "set password for", below: true, of: regexp.MustCompile(`(?i)set password for\s+\S+\s*=\s*(?:\w+\s*\()?\s*'([^']+)'`)},                                                                         // MySQL
	{word: "identified", below: true, of: regexp.MustCompile(`\b(?i:user|role|grant|connect|link)\b[^;]{0,256}?(?i:identified)(?i:\s+with\s+[\w"']+)?\s+(?i:by|as)\s+(?i:password\s+)?["']?([^"'\s;]+)`)}, // SQL
	{word: "+@", of: aclRule}, {word: "~*", of: aclRule}, // Redis' ACL
	{word: "@tcp", of: account}, {word: "@unix(", of: account}, {word: "@//", of: account}, {word: "@(", of: account},
	{word: "bearer ", of: scheme, mixed: true}, {word: "basic ", of: scheme, mixed: true}, {word: "bearer%20", of: scheme, mixed: true}, {word: "basic%20", of: scheme, mixed: true},
	{word: "sig=", of: signature}, {word: "signature=", of: signature},
	{word: "/hooks/", of: regexp.MustCompile(`/hooks/([a-z0-9]{26})(?:\W|$)`)}, // Mattermost
}

// maxForm is the number of bytes searched before and after a form's word.
const maxForm = 4 << 10

// find finds a form's credentials near its word. Each part is searched once.
func (f *form) find(t *search, end int) (none span, ok bool) {
	if end <= t.formed[f] {
		return none, false
	}
	from, to := max(end-maxForm, lineBegin(t.s, end)), min(t.lineEnd(end), end+maxForm)
	if f.below {
		from, to = max(0, end-256), min(len(t.s), end+maxForm)
	}
	cost(to - from)
	if t.formed == nil {
		t.formed = map[*form]int{}
	}
	t.formed[f] = to
	part := t.s[from:to]
	if f.line != nil && !f.line.MatchString(part) {
		return none, false
	}
	for _, at := range f.of.FindAllStringSubmatchIndex(part, -1) {
		for at = at[2:]; at[0] < 0; at = at[2:] { // the group that matches
		}
		if value := part[at[0]:at[1]]; says(credentialName, value) && (!f.mixed || hasBoth(value)) {
			t.found = append(t.found, span{from + at[0], from + at[1], "password"})
		}
	}
	return none, false
}

func hasBoth(s string) bool {
	lower, upper := strings.ToLower(s) != s, strings.ToUpper(s) != s
	return strings.ContainsAny(s, "0123456789") && (lower || upper) || lower && upper && len(s) >= 20
}

// dataURL returns the base64 part of a data URL (RFC 2397), which Ignition uses for files.
func (t *search) dataURL(from int) (span, bool) {
	s, to := t.s, from
	for to < len(s) && (isBase64(s[to]) || strings.IndexByte("=-_%", s[to]) >= 0) {
		to++
	}
	return span{from, to, "data"}, t.holds(unescaped(s[from:to]), t.within)
}

// escapedURL returns an escaped URL with a password inside another URL; its %3A%2F%2F ends at end.
func (t *search) escapedURL(end int) (span, bool) {
	s, from, to := t.s, end-len("%3a%2f%2f"), end
	for from > 0 && (isWordByte(s[from-1]) || s[from-1] == '+') {
		from--
	}
	for to < len(s) && to-end < maxURL && (isWordByte(s[to]) || strings.IndexByte("%-_.~+", s[to]) >= 0) {
		to++
	}
	if !t.holds(unescaped(s[from:to]), t.within+1) {
		return span{to: to}, false
	}
	return span{from, to, "url"}, true
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

// columns matches the rest of an INSERT INTO up to its values, with the names of its columns.
var columns = regexp.MustCompile("(?i)^[\\w.\"`\\[\\]]{1,256}\\s*\\(([^()]+)\\)\\s*values?\\s*\\(")

// inserted finds credentials among the values of a statement of SQL whose INSERT INTO ends at end.
func (t *search) inserted(end int) (none span, ok bool) {
	part := t.s[end:min(len(t.s), end+maxForm)]
	m := columns.FindStringSubmatchIndex(part)
	if m == nil || end < t.rows {
		return none, false
	}
	names := strings.Split(part[m[2]:m[3]], ",")
	cost(m[1])
	nth, depth, i := 0, 1, end+m[1]
	for ; i < len(t.s) && (depth > 0 || strings.IndexByte(", \t\r\n(", t.s[i]) >= 0); i++ {
		switch c := t.s[i]; {
		case c == '(':
			if depth++; depth == 1 {
				nth = 0
			}
		case c == ')':
			depth--
		case c == ',' && depth == 1:
			nth++
		case isQuote(c):
			v := inDelimiters(t.s, i, i+1)
			if i = v.to; nth < len(names) && says(nameKind(strings.TrimSpace(names[nth])), v.in(t.s)) {
				t.found = append(t.found, span{v.from, v.to, "value"})
			}
		}
	}
	cost(i - end)
	t.rows = i
	return none, false
}

// directives are words in programs' settings that a name and its value follow, separated by spaces.
var directives = set(`proxy_set_header add_header fastcgi_param uwsgi_param set-header add-header setenv presetenv env set
	header requestheader more_set_headers grpc_set_header header_up header_down`)

// passes are nginx's names of the servers to which it passes requests.
var passes = set(`proxy_pass fastcgi_pass uwsgi_pass scgi_pass grpc_pass memcached_pass`)

// spaced finds the value of a name that only a space separates from it: a quoted or random one; a single word that
// ends the line, as in Redis' files; or a word after a login, as in .netrc. Other names must start the line or follow
// a directive, and either have several words or a value that does not read like a word.
func (a *assigned) spaced(i int) (text, bool) {
	s := a.s
	v, ok := a.valueAt(i)
	name := strings.ToLower(s[a.from:a.to])
	isPassword := isPasswordWord(name)
	if !ok || v.block || passes[s[a.from:a.to]] || v.to-v.from > maxURL || v.quote == "" && v.to-v.from > maxValue && strings.ContainsAny(v.begin(s), " \t") || !isPassword && strings.Contains(v.in(s), "://") { // an argument
		return text{}, false
	}
	if v.quote != "" && (isPassword || looksRandom(v.in(s))) {
		return v, true
	}
	line, lines := s[max(a.from-maxGap, lineBegin(s, a.from)):a.from], a.lines
	if end := strings.IndexByte(s[v.from:v.to]+s[v.to:min(len(s), v.to+2)], ';'); end > 0 { // perhaps a statement in a block on one line
		if i := strings.LastIndexAny(line, "{;"); i >= 0 && strings.IndexByte(line, '{') >= 0 && !strings.Contains(line, "{{") {
			line, lines = line[i+1:], true
			if v.quote == "" {
				v.to = v.from + end
			}
		}
	}
	before := strings.Fields(line)
	n := len(before)
	word := func() (text, bool) { // the first word
		if end := strings.IndexAny(v.in(s), " \t"); end > 0 {
			v.to = v.from + end
		}
		return v, true
	}
	if isPassword && n > 1 && (before[n-2] == "login" || before[n-2] == "account" || before[n-2] == "machine") {
		return word()
	}
	if communities[name] { // snmpd's
		word()
		return v, n == 0 && name != "community"
	}
	if v.quote == "" {
		v.to -= len(v.in(s)) - len(strings.TrimRight(v.in(s), "; "))
	}
	value := v.in(s)
	if value == "" {
		return text{}, false
	}
	named := n == 0 && lines && strings.ContainsAny(name[1:], "._-")
	switch {
	case looksRandom(value), n == 0 && lines && v.quote != "" && strings.HasPrefix(s[min(len(s), v.to+1):], ";"):
		return v, true
	case a.inMessage(v):
		return word()
	case n > 0 && before[0] == "sentinel" && strings.Count(value, " ") < 2: // it may put the server's name first
		v.from += strings.IndexByte(value, ' ') + 1
		return v, true
	case v.quote == "" && strings.Contains(value, " ") && (named || n == 0 && lines) && strings.Count(value, " ") < 3:
		if last := strings.LastIndexByte(value, ' '); looksRandom(value[last+1:]) || isMixed(value[last+1:]) {
			return v, true // the credential is the last of several values
		}
		if isPassword && named {
			return word()
		}
		return text{}, false
	case v.quote == "" && strings.ContainsAny(value, " \t"):
		return text{}, false
	case name == "insecure-password", name == "auth" && isAccount(value), isPassword && named: // HAProxy
		return v, true
	case n > 1 && before[n-1][0] == '-' && before[n-2] == "set": // fish
		return v, isMixed(value)
	case n > 0 && n < 4 && directives[strings.ToLower(strings.TrimLeft(before[n-1], "#$"))]:
		return v, isPassword || isMixed(value) || strings.ContainsAny(name, "-_") && value[0] != '$'
	case n > 0 || !lines:
		return text{}, false
	}
	return v, isPassword || named || isMixed(value)
}

// passwordLike matches a word that is unlikely after the word password in a message, unless it is one; sha256 is not.
var passwordLike = regexp.MustCompile(`^[a-zA-Z@$!]+(?:[a-zA-Z@$!]{5}\d+|\d+[a-zA-Z@$!]{2,}\d)[\w@$!]*[.,;:!)]?(?:\s|$)`)

// inMessage reports whether the first word of v is a password in a message.
func (a *assigned) inMessage(v text) bool {
	return !a.lines && v.quote == "" && isPasswordWord(a.s[a.from:a.to]) && passwordLike.MatchString(v.begin(a.s))
}

// isMixed reports whether a value is neither a word nor an object's name.
func isMixed(s string) bool {
	s = s[:min(len(s), maxToken)]
	return len(s) >= 8 && !isObjectName(s) && (strings.ContainsAny(s, "0123456789") || strings.ToLower(s[1:]) != s[1:])
}

// looksRandom reports whether a value is unlikely to be a word: it is long, and has digits and capitals.
func looksRandom(s string) bool {
	s = s[:min(len(s), maxToken)]
	return len(s) >= 16 && strings.ContainsAny(s, "0123456789") && strings.ToLower(s) != s && !strings.Contains(s, " ")
}
