package redact

import (
	"regexp"
	"slices"
	"strings"
)

// above returns the parent of the YAML field at from.
func (t *search) above(from int) string {
	at := lineBegin(t.s, from)
	indent := indentation(t.s, at)
	for lines := 0; at > 0 && lines < maxBlock && from-at < maxGap*4; lines++ {
		end := at - 1
		at = lineBegin(t.s, end)
		content := strings.TrimSpace(t.s[at:end])
		if content == "" || indentation(t.s, at) >= indent {
			continue
		}
		name, isField := strings.CutSuffix(content, ":")
		if !isField {
			return ""
		}
		return strings.TrimPrefix(name, "- ")
	}
	return ""
}

// container redacts the fields below a container's name: credentials: or, in HCL, tokens {. It reports whether
// there may be any.
func (t *search) container(from, to int, name string) bool {
	end := lineEnd(t.s, to)
	if rest := strings.Trim(t.s[to:end], " \t\r"); rest != ":" && rest != "{" && rest != "= {" {
		return false
	}
	indent := indentation(t.s, lineBegin(t.s, from))
	depth := 0
	for lines := 0; end < len(t.s) && lines < maxBlock; lines++ {
		line := end + 1
		end = lineEnd(t.s, min(line, len(t.s)))
		content := strings.TrimSpace(t.s[min(line, len(t.s)):end])
		at := indentation(t.s, line)
		switch {
		case content == "":
			continue
		case at <= indent || strings.HasPrefix(content, "- "):
			return lines > 0
		case depth == 0:
			depth = at
		}
		i := strings.IndexAny(content, ":=")
		if at != depth || i < 0 || describing(strings.TrimSpace(content[:i])) {
			continue
		}
		v, ok := valueAt(t.s, line+at+i+1)
		switch {
		case ok && v.literal:
			t.block(line+at, v, name)
		case ok && !v.block && v.to <= end && !v.isMap(t.s) && says(credentialName, v.head(t.s)):
			t.found = append(t.found, span{v.from, v.to, name})
		}
	}
	return depth > 0
}

func endsWithAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.HasSuffix(s, w) {
			return true
		}
	}
	return false
}

// maxBlock is the number of lines of a block that are searched for a value below a name.
const maxBlock = 30

// block redacts the lines below a name: a text, a list, or the values of a map's fields. It returns the end of
// the redacted part.
func (t *search) block(from int, v text, name string) int {
	s, at := t.s, v.from
	indent := indentation(s, lineBegin(s, from))
	isMap, begin, end, lists := false, -1, at, false
	for lines := 0; end < len(s); lines++ {
		line := end + 1
		stop := lineEnd(s, min(line, len(s)))
		content := strings.TrimSpace(s[min(line, len(s)):stop])
		depth := indentation(s, line)
		if content != "" && depth <= indent && !isAction(content) && !(depth == indent && strings.HasPrefix(content, "- ")) {
			break
		}
		if content != "" && begin < 0 && !isAction(content) && (v.literal || !strings.HasPrefix(content, "#")) {
			begin = line + depth
			lists = strings.HasPrefix(content, "- ")
			isMap = !v.literal && isField(content)
		}
		if isMap {
			if lines == maxBlock {
				break
			}
			field := strings.TrimPrefix(content, "- ")
			t.inline(field, line+depth+len(content)-len(field), name)
		}
		end = stop
	}
	if begin < 0 && v.rest > 0 { // nothing follows the comment, so it may be the value
		v.from, v.to = v.rest, v.rest+len(strings.TrimRight(s[v.rest:at], " \t\r"))
		t.found = append(t.found, span{v.from, v.to, name})
		return at
	}
	if begin < 0 || isMap || !says(credentialName, s[begin:end]) || lists && nameKind(name) == refName ||
		lists && nameKind(name) == maybeName && areNames(s[begin:end]) {
		return at
	}
	t.found = append(t.found, span{begin, end, name})
	return end
}

// action matches a line of a template that only controls others: {{- range .Values.pullSecrets }}.
var action = regexp.MustCompile(`^\{\{-? *(range|if|else|end|with)\b[^{}]*\}\}$`)

func isAction(line string) bool { return strings.HasPrefix(line, "{{") && action.MatchString(line) }

// areNames reports whether the lines of a list are names of objects.
func areNames(lines string) bool {
	for line := range strings.SplitSeq(lines, "\n") {
		if name := strings.TrimSpace(line); name != "" && !isObjectName(strings.TrimPrefix(name, "- ")) {
			return false
		}
	}
	return true
}

// inline redacts value: x in a map below a credential's name.
func (t *search) inline(content string, at int, name string) {
	n, ok := isFieldOf(content, inlineValues)
	if !ok {
		return
	}
	v, ok := valueAt(t.s, at+n)
	switch {
	case ok && v.block:
		t.block(at, v, name)
	case ok && says(credentialName, v.head(t.s)):
		if v.quote == "" && strings.HasPrefix(t.s[v.from:], v.head(t.s)) {
			v.to = v.from + len(v.head(t.s))
		}
		t.found = append(t.found, span{v.from, v.to, name})
	}
}

// isFieldOf reports whether content starts with one of the names and a : or =, and where the value starts.
func isFieldOf(content string, names []string) (at int, ok bool) {
	bare := strings.TrimLeft(content, `"'`)
	i := slices.IndexFunc(names, func(name string) bool {
		rest, found := strings.CutPrefix(bare, name)
		rest = strings.TrimLeft(rest, "\"' \t")
		return found && rest != "" && (rest[0] == ':' || rest[0] == '=')
	})
	if i < 0 {
		return 0, false
	}
	at = len(content) - len(bare) + len(names[i])
	return at + strings.IndexAny(content[at:], ":=") + 1, true
}

// isField reports whether a YAML line is a field, or a list element with fields.
func isField(content string) bool {
	content = strings.TrimPrefix(content, "- ")
	name, rest, found := strings.Cut(content, ":")
	return strings.HasPrefix(content, "#") || found && (rest == "" || rest[0] == ' ') && !strings.ContainsAny(name, " ")
}

func indentation(s string, i int) int {
	n := 0
	for i+n < len(s) && (s[i+n] == ' ' || s[i+n] == '\t') {
		n++
	}
	return n
}
