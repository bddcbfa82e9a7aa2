package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// What begins, or is part of, values that are credentials whatever their name.
const (
	pemPrivate = "PRIVATE KEY"    // -----BEGIN (RSA |EC |OPENSSH |ENCRYPTED |…)PRIVATE KEY( BLOCK)-----
	pemBase64  = "LS0tLS1CRUdJTi" // base64 of -----BEGIN, as kubeconfigs hold it
	jwtStart   = "eyJ"            // base64 of {"
)

// jwt is RFC 7519's compact form: three parts in base64url, two of them JSON objects.
var jwt = regexp.MustCompile(`eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*`)

// credentialValue tells whether a text holds a private key in PEM (also in base64), a JSON web token,
// or a URL with a password. It serves decoded strings and raw JSON alike: the escapes that Go's
// encoder writes change nothing that it looks for.
func credentialValue(s string) bool {
	return strings.Contains(s, pemPrivate) && strings.Contains(s, "-----BEGIN") ||
		strings.Contains(s, pemBase64) && holdsEncodedKey(s) ||
		strings.Contains(s, jwtStart) && jwt.MatchString(s) ||
		holdsURLPassword(s)
}

// holdsEncodedKey finds base64 of PEM and looks for a private key in it.
func holdsEncodedKey(s string) bool {
	for {
		start := strings.Index(s, pemBase64)
		if start < 0 {
			return false
		}
		s = s[start:]
		end := strings.IndexFunc(s, func(r rune) bool { return !isBase64(r) })
		if end < 0 {
			end = len(s)
		}
		decoded, _ := base64.RawStdEncoding.DecodeString(s[:end-end%4])
		if strings.Contains(string(decoded), pemPrivate) {
			return true
		}
		s = s[end:]
	}
}

func isBase64(r rune) bool {
	return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '+' || r == '/'
}

// minURLToken is the length from which a URL's user without a password is taken for a token
// (https://ghp_…@github.com) and not for a name (ssh://git@github.com).
const minURLToken = 20

// holdsURLPassword finds scheme://user:password@host, and scheme://token@host. A name with a digest
// (docker-pullable://app@sha256:…), as pods have it in their status, is none.
func holdsURLPassword(s string) bool {
	for {
		_, rest, found := strings.Cut(s, "://")
		if !found {
			return false
		}
		s = rest
		user, host, found := strings.Cut(authority(rest), "@")
		if !found || strings.HasPrefix(host, "sha256:") {
			continue
		}
		name, password, found := strings.Cut(user, ":")
		if found && password != "" && !isReference(password) || !found && len(name) >= minURLToken && !isReference(name) {
			return true
		}
	}
}

// authority is what comes before the path, as far as text around a URL allows to tell.
func authority(s string) string {
	if end := strings.IndexAny(s, "/ \t\r\n\"'`"); end >= 0 {
		return s[:end]
	}
	return s
}

var reference = regexp.MustCompile(`^\$(\(\w+\)|\{\w+\})$`)

// isReference tells whether a value only names a variable: $(DB_PASSWORD), ${DB_PASSWORD}.
func isReference(s string) bool {
	s = strings.Trim(s, `"'`)
	return strings.HasPrefix(s, "$") && reference.MatchString(s)
}
