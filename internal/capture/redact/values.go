package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/internal/jsonscan"
)

// says reports whether a text under a credential's name may be one, as opposed to an empty text, a reference to
// a credential's location, or an ordinary word.
func says(kind kindOfName, s string) bool {
	if kind == plainName || s == "" {
		return false
	}
	s = strings.Trim(s, "\"'` \t\r\n;,")
	if len(s) > maxValue {
		s = s[:maxValue]
	} else if isMask(s) {
		return false
	}
	cost(len(s))
	for _, scheme := range [...]string{"Bearer ", "Basic ", "Token "} {
		s = strings.TrimPrefix(s, scheme)
	}
	if s == "" {
		return false
	}
	if strings.IndexByte("${<~^", s[0]) >= 0 {
		if r := leading.FindString(s); r != "" && isPath(s[len(r):]) || versions.MatchString(s) { // $(DIR)/token
			return false
		}
	}
	if isReference(s) || isPath(s) || s == "{" || s == "{}" || s == "[]" {
		return false
	}
	if len(s) < 10 && void[strings.ToLower(s)] {
		return false
	}
	switch kind {
	case refName:
		return !isObjectName(s)
	case hookName:
		return isHook(s)
	case wordName:
		if strings.Contains(s, "://") {
			return false
		}
		if digitsIn(s) > 8 && !strings.ContainsAny(s, " /") {
			return true
		}
		return !strings.Contains(s, " ") && (!isObjectName(strings.Trim(strings.ToLower(s), "_")) || looksRandom(s))
	case loginName:
		return strings.Contains(s, ":") && !strings.HasPrefix(s, "system:")
	case maybeName:
		return !(isObjectName(s) && strings.ContainsAny(s, "-/")) && !headerName.MatchString(s)
	case manyName: // their number, or their names
		return strings.Trim(s, "0123456789.,kKmMgG") != ""
	}
	return true
}

// phrase matches some words, of which one is a word of sentences or says what they are about, and words alone.
var (
	phrase     = regexp.MustCompile(`(?i)\b(?:the|an?|is|are|in|to|for|your|password|passphrase|token|secret|passwort|kennwort)\b`)
	plainWords = regexp.MustCompile(`^\pL[\pL'’]*(?:,? [\pL'’-]+)+[.!?:]?$`)
)

// isPhrase reports whether a text is a phrase for people, below the name of a message, as in translations, or of a word with
// a capital, as in Markdown: Token: see the vault.
func isPhrase(name, s string) bool {
	if strings.IndexByte(s, ' ') < 0 || !plainWords.MatchString(s) || !phrase.MatchString(s) {
		return false
	}
	var space [16]string
	words := splitWords(name, space[:0])
	switch {
	case len(words) == 0:
		return false
	case len(words) == 1:
		return name[0] <= 'Z' && name[1:] == words[0][1:] && endsWithAny(s, ".", "!", "?")
	}
	return messages[words[0]]
}

func digitsIn(s string) (n int) {
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}

// versions matches a range of versions.
var versions = regexp.MustCompile(`^[~^]\d+\.[\d.]+$`)

// headerName matches the name of a header, as in --requestheader-group-headers=X-Remote-Group.
var headerName = regexp.MustCompile(`^X(-[A-Z][a-z]+)+$`)

// void are values that are never credentials, whatever the name: switches, and types in schemas.
var void = set(`true false yes no on off null nil none undefined enabled disabled required optional string str text
	bytes int integer number boolean bool object array any basic bearer auto 0 1 n/a read write inherit
	rbac abac webhook oauth oauth2 oidc ldap saml mtls kerberos`)

var reference = regexp.MustCompile(`^\$?(\$\([\w.-]+\)|\$?\{\{[^{}]*\}\}|\$\{[\w.-]+\}|\$\{(env|file|secret|vault|secrets)[:.][\w./]+(:[\w./]+)*\}|\$__\w+\{[^{}]*\}|` +
	`\$[A-Z_][A-Z0-9_]*|\$[a-zA-Z]+([.:-][a-zA-Z]+)+|\$\([^()]*\)|\{\{[^{}]*\}\}|<<[\w.-]+>>|<(?:path:)?[\w ./:#-]+>|%\{[\w.-]+\}|%[\w.-]+%|%[a-z]|` +
	`\$\([\w.-]+\)(/(\$\([\w.-]+\)|[\w.-]+))+|ref\+[a-z0-9]+://\S+|vault:[\w/.-]+#[\w.${}-]+)$`)

// lookUps are the starts of expressions, in programs and templates, that read a value from elsewhere.
var lookUps = []string{"os.getenv(", "os.environ", "process.env", "env(", "env.", "ENV[", "ENV.", "getenv(", "System.getenv(", "include(", "lookup(", "file(", "readFile("}

// isReference reports whether a value only refers to another one: $(DB_PASSWORD), ${DB_PASSWORD}, {{ .password
// }}.
func isReference(s string) bool {
	if len(s) < 2 || len(s) > 512 {
		return false
	}
	switch s[0] {
	case 'E':
		return strings.HasPrefix(s, "ENC[") && strings.HasSuffix(s, "]") // encrypted by SOPS
	case '%':
		if i := strings.IndexByte(s[1:], '%'); i > 0 && isPath(s[i+2:]) {
			return true
		}
		fallthrough
	case '$', '{', '<':
		return reference.MatchString(s) && !literalDefault.MatchString(s)
	case 'r', 'v':
		if strings.HasPrefix(s, "ref+") || strings.HasPrefix(s, "vault:") {
			return reference.MatchString(s)
		}
	}
	return strings.HasSuffix(strings.TrimRight(s, ")"), `"]`) && indexed.MatchString(s) || strings.HasPrefix(s, "__") && substituted.MatchString(s) ||
		isLookUp(s) && !strings.ContainsAny(strings.TrimRight(s, ";"), ";\n") && !fallback.MatchString(lookedUp.ReplaceAllString(s, ""))
}

// indexed matches an element of an attribute, in HCL and the settings of Grafana Alloy:
// remote.kubernetes.secret.db.data["password"].
var indexed = regexp.MustCompile(`^(convert\.nonsensitive\()?[a-z]\w*(\.[a-z]\w*)+\["[\w./-]+"\]\)?$`)

// substituted matches a word that a script replaces: __KUBECONFIG_FILEPATH__.
var substituted = regexp.MustCompile(`^__[A-Z]+(_[A-Z]+)*__$`)

// lookedUp matches the name that a look-up reads, which is not a default value: os.getenv("A".
var lookedUp = regexp.MustCompile(`^[\w.]+[(\[]\s*("[^"]*"|'[^']*')`)

func isLookUp(s string) bool {
	return slices.ContainsFunc(lookUps, func(begin string) bool { return strings.HasPrefix(s, begin) })
}

// fallback matches a look-up's default value: os.getenv("A", "x"), process.env.A || "x".
var fallback = regexp.MustCompile(`(\|\||\?\?|\?:|\bor|[,{(])\s*(default\s*[=:]\s*)?("[^"]+("|$)|'[^']+('|$))\s*[)}]*[,;]?$`)

// literalDefault matches a template with a value of its own, {{ .Values.password | default "x" }}, {{ "x" | b64enc }},
// and a command's literal output, $(echo x).
var literalDefault = regexp.MustCompile(`\b(?:default|coalesce|or|ternary)\s(?:[^|{}"']*\s)?\\*("[^"]|'[^'])|^\{\{-?\s*\\*["'\x60]|^\$\((echo|printf)\s+[^$]*\)$`)

// isPath reports whether s is a file path.
func isPath(s string) bool {
	if len(s) < 5 || len(s) > 256 || s[0] != '/' && !strings.HasPrefix(s, "./") && !strings.HasPrefix(s, "file:") {
		return false
	}
	return filePath.MatchString(s)
}

var filePath = regexp.MustCompile(`^(file:)?\.?/+(var|etc|run|mnt|opt|srv|home|root|tmp|usr|app|data|vault|secrets?|config|certs?|keys|credentials|tls|[\w.-]+/[\w.-]+)(/[\w.@+-]+)*/?$`)

// isMask reports whether s stands for a value already redacted elsewhere: ******, xxxx, [REDACTED].
func isMask(s string) bool {
	return strings.Trim(s, "*.") == "" || len(s) > 2 && strings.Trim(s, "xX") == "" || strings.EqualFold(strings.Trim(s, "[]<>()"), "redacted")
}

// isObjectName reports whether a text looks like the name of a Kubernetes object, namespace/name, or a key in a
// Secret: words of letters with separators, and few digits.
func isObjectName(s string) bool {
	if len(s) > 253 {
		return false
	}
	letters, digits := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
			if letters++; letters > 24 {
				return false
			}
		case c >= '0' && c <= '9':
			if digits++; digits > 6 {
				return false
			}
		case (c == '-' || c == '.' || c == '_' || c == '/') && i > 0 && i < len(s)-1:
			letters, digits = 0, 0
		default:
			return false
		}
	}
	return true
}

// isHook reports whether s is a URL with an unguessable path.
func isHook(s string) bool {
	_, rest, found := strings.Cut(s, "://")
	_, path, hasPath := strings.Cut(rest, "/")
	if !found || !hasPath {
		return false
	}
	return strings.ContainsAny(path, "?=") || slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool {
		return len(part) >= 8 && (strings.ContainsAny(part, "0123456789") || strings.ToLower(part) != part)
	})
}

// minCoded is the length from which base64 is decoded.
const minCoded = 24

// forURLs converts URL-safe base64 to the standard alphabet, and removes line ends.
var forURLs = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", " ", "")

// decoded returns the text encoded in base64, in either alphabet and over several lines; false if s is not
// base64. It loses its zero bytes, so that UTF-16 reads like ASCII. Others that are no text end a line, so that nothing is
// found in random bytes.
func decoded(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if len(s) < minCoded || !isBase64(s[0]) || !isBase64(s[len(s)/2]) {
		return "", false
	}
	cost(len(s))
	body, other := strings.TrimRight(s, "="), false
	if isHex(body) { // a digest
		return "", false
	}
	for i := range len(body) {
		if isBase64(body[i]) {
			continue
		}
		if strings.IndexByte("-_\r\n", body[i]) < 0 && !(body[i] == ' ' && strings.IndexByte(" \r\n", body[i-1]) >= 0) {
			return "", false
		}
		other = true
	}
	if strings.ToLower(body) == body { // a path: base64 of a text has capitals
		return "", false
	}
	if other {
		body = forURLs.Replace(body)
	}
	b, err := base64.RawStdEncoding.DecodeString(body)
	if err != nil {
		return "", false
	}
	text := strings.ReplaceAll(string(b), "\x00", "")
	if utf8.ValidString(text) {
		return text, true
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' && r != '\t' {
			return '\n'
		}
		return r
	}, text), true
}

func isHex(s string) bool {
	for i := range len(s) {
		if !jsonscan.IsHex(s[i]) {
			return false
		}
	}
	return true
}

// opaque are the base64 prefixes of formats that cannot be searched: gzip, zstd, zip, xz and bzip2 files,
// Kerberos keytabs, and key stores of Java and KeePass.
var opaque = []string{"H4sI", "KLUv/", "UEsDBB", "/Td6WFo", "QlpoO", "BQIAAA", "/u3+7QAAAA", "zs7OzgAAAA", "A9mimmf7"}

// isZipped reports whether s is in one of these formats.
func isZipped(s string) bool {
	return len(s) >= minCoded && strings.IndexByte("HKU/QBzA", s[0]) >= 0 && slices.ContainsFunc(opaque, func(begin string) bool { return strings.HasPrefix(s, begin) })
}

func isBase64(b byte) bool { return base64Bytes[b] }

// isUserPassword reports whether s is base64 of user:password, as in a registry's auth.
func isUserPassword(s string) bool {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(forURLs.Replace(strings.TrimSpace(s)), "="))
	return err == nil && len(b) > 3 && strings.Contains(string(b), ":")
}
