package redact

import (
	"regexp"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// arguments hides in a command line or an environment: a list of strings, one string for a shell, a
// list of {name, value}, or a map. A string that holds a credential is hidden whole.
func (a *run) arguments(v any) any {
	switch v := v.(type) {
	case string:
		if credentialArgument(v) {
			return a.hide(v)
		}
	case map[string]any:
		for key, child := range v {
			if s, ok := child.(string); ok && credentialName(key) && !isReference(s) {
				a.set(v, key)
			}
		}
	case []any:
		for i := range v {
			flag := ""
			if i > 0 {
				flag, _ = v[i-1].(string)
			}
			a.argument(v, i, flag)
		}
	}
	return a.value(v)
}

// argument hides one element, which may be the value of the flag before it.
func (a *run) argument(list []any, i int, before string) {
	s, ok := list[i].(string)
	switch {
	case !ok:
	case announces(before) && isPlain(s):
		list[i] = a.hideElement(byFlag(before), s)
	case credentialArgument(s):
		at := step{kind: diff.Index, index: i}
		if flag, _, found := strings.Cut(s, "="); found && len(strings.Fields(flag)) == 1 {
			at = byFlag(flag)
		}
		list[i] = a.hideElement(at, s)
	}
}

func (a *run) hideElement(at step, s string) any {
	a.push(at)
	defer a.pop()
	return a.hide(s)
}

// byFlag names an argument by its flag, so that another argument before it does not change its marker.
func byFlag(flag string) step { return step{kind: diff.Value, text: flag} }

// credentialArgument tells whether a command line holds name=value where the name is a credential's
// (also --name=value, and name=value within others as in --set=db.password=x), or -name value, or
// Name: value (a header, a line of YAML).
func credentialArgument(s string) bool {
	tokens := strings.Fields(s)
	for i, token := range tokens {
		for name, value, found := strings.Cut(token, "="); found; name, value, found = strings.Cut(value, "=") {
			if isValue(value) && credentialName(name) {
				return true
			}
		}
		if i+1 < len(tokens) && announces(token) && isPlain(tokens[i+1]) {
			return true
		}
	}
	return false
}

// announces tells whether the next word is a credential.
func announces(token string) bool {
	token = strings.Trim(token, `"'`)
	return (strings.HasPrefix(token, "-") || strings.HasSuffix(token, ":")) && !strings.ContainsAny(token, "= \t\n") && credentialName(token)
}

var shellVariable = regexp.MustCompile(`^\$[A-Z_][A-Z0-9_]*$`)

// isValue tells whether a text is more than nothing and than the name of a variable.
func isValue(s string) bool {
	return s != "" && !isReference(s) && !shellVariable.MatchString(strings.Trim(s, `"';`))
}

// isPlain tells whether an argument is a value and no flag.
func isPlain(s string) bool { return isValue(s) && !strings.HasPrefix(s, "-") }

func isVariable(v any) bool {
	s, ok := v.(string)
	return ok && isReference(s)
}
