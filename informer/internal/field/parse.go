package field

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// part is one written step: a key, or [*].
type part struct {
	key  string
	each bool
	end  int // the offset of its end
}

// parse parses a path, which may have fields, keys and [*] of the grammar in docs/paths.md.
func parse(path string) ([]part, error) {
	var parts []part
	at := 0
	fail := func(at int, format string, args ...any) ([]part, error) {
		return nil, fmt.Errorf("column %d: %s", 1+utf8.RuneCountInString(path[:at]), fmt.Sprintf(format, args...))
	}
	if strings.HasPrefix(path, "{") || path == "$" || strings.HasPrefix(path, "$.") {
		return fail(0, "this is JSONPath: write the path alone, such as spec.nodeName")
	}
	if strings.HasPrefix(path, ".") { // kubectl and jq write a leading dot
		at++
	}
	for first := true; first || at < len(path); first = false {
		rest := path[at:]
		switch {
		case strings.HasPrefix(rest, "[*]"):
			at += len("[*]")
			parts = append(parts, part{each: true, end: at})
			continue
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil {
				return fail(at+1, "unterminated quote")
			}
			key, err := strconv.Unquote(quoted)
			if err != nil || !strings.HasPrefix(rest[1+len(quoted):], "]") {
				return fail(at+1+len(quoted), "want ]")
			}
			if why := flaw(key, false); why != "" {
				return fail(at+1, "%s", why)
			}
			at += len(quoted) + 2
			parts = append(parts, part{key: key, end: at})
			continue
		case strings.HasPrefix(rest, "["):
			return fail(at, `want [*] or ["key"]: single elements of a list cannot be indexed`)
		case first:
		case rest[0] == '.':
			at++
		default:
			return fail(at, "want . or [ after ]")
		}
		n := strings.IndexAny(path[at:], ".[")
		if n < 0 {
			n = len(path) - at
		}
		key := path[at : at+n]
		if why := flaw(key, true); why != "" {
			return fail(at, "%s", why)
		}
		at += n
		parts = append(parts, part{key: key, end: at})
	}
	return parts, nil
}

// flaw returns the reason if a key is invalid, or "".
func flaw(key string, bare bool) string {
	for _, r := range key {
		switch {
		case r == '*':
			return "wildcards in keys cannot be indexed; [*] is every element of a list"
		case r == utf8.RuneError:
			return "invalid UTF-8"
		case bare && (strings.ContainsRune(`]"=,`, r) || !unicode.IsPrint(r) || r == ' '):
			return fmt.Sprintf(`unexpected %q; a key with such characters is written ["…"]`, r)
		}
	}
	if bare && key == "" {
		return "empty name"
	}
	return ""
}
