package redact

import (
	"regexp"
	"strings"
)

// firstArgument matches a variable before another argument of a call, and otherArgument what is before a further text.
var (
	firstArgument = regexp.MustCompile(`^[\w.$]+\s*,\s*`)
	otherArgument = regexp.MustCompile(`^\s*,\s*["']`)
)

// maxArguments bounds the further arguments of a call.
const maxArguments = 8

// called finds the text behind a name and a bracket or a comma. A call that is about a password may have several, of which any may
// be the password: setPassword("user", "x"). In one that ends with auth, it is the last: SetBasicAuth("user", "x").
func (a *assigned) called(i int, others bool) (text, bool) {
	s := a.s
	all := isPasswordWord(s[a.from:a.to])
	if others = others && (all || isAuth(s[a.from:a.to])); others {
		i += len(firstArgument.FindString(s[i:min(len(s), i+maxGap)]))
	}
	v, ok := a.valueAt(i)
	for n, end := 0, v.to; others && ok && n < maxArguments; n++ {
		at := min(len(s), end+len(v.quote))
		next := otherArgument.FindString(s[at:min(len(s), at+maxGap)])
		if next == "" {
			break
		}
		other := inDelimiters(s, at+len(next)-1, at+len(next))
		if end = other.to; all && says(credentialName, v.in(s)) {
			v.to = end
		} else {
			v = other
		}
	}
	return v, ok && v.quote != "" && !isKey(s, v)
}

// comparisons are places where nginx and HAProxy compare a part of a request with a text without quotes, or set a variable. The
// text is between two parts, behind a name.
var comparisons = []struct{ before, between, behind *regexp.Regexp }{
	{regexp.MustCompile(`\bif\s*\(\s*\$(?:http|arg|cookie)_\w*$`), regexp.MustCompile(`^\s*(?:!?~\*?|!?=)\s*`), regexp.MustCompile(`\)\s*(?:\{|$)`)},
	{regexp.MustCompile(`(?:(?:hdr|urlp|url_param|cook)\(|[^-]\bvar\(\w+\.)[\w.-]*$`), regexp.MustCompile(`^(?:,[^()\s]*)?\)(?:,\w+)*\s+(?:(?:-i|--|-m (?:str|sub|beg|end|dir|dom))\s+)*`), regexp.MustCompile(`\s*(?:\}|\b(?:if|unless)\b|$)`)},
	{regexp.MustCompile(`set-var\(\w+\.[\w.-]*$`), regexp.MustCompile(`^\)\s+str\(`), regexp.MustCompile(`\)`)},
}

// compared finds the text of a comparison.
func (a *assigned) compared() (none text, ok bool) {
	s := a.s
	for _, c := range comparisons {
		between := c.between.FindString(s[a.to:min(len(s), a.to+maxGap)])
		if between == "" || !c.before.MatchString(s[max(0, a.from-32):a.to]) {
			continue
		}
		cost(maxGap)
		v, ok := a.valueAt(a.to + len(between))
		if end := c.behind.FindStringIndex(v.begin(s)); end != nil && v.quote == "" {
			v.to = v.from + end[0]
		}
		value := strings.Trim(v.begin(s), "^$.*+()? ") // without what a regular expression may have around it
		return v, ok && value != "" && strings.IndexByte("$-", v.begin(s)[0]) < 0 && says(credentialName, value)
	}
	return none, false
}

// pairName matches what precedes a name that is itself a value, and pairValue what is between it and its value:
// {name: TOKEN, value: x}, <add key="Token" value="x"/>, also on another line.
var (
	pairName  = regexp.MustCompile(`(?i)(?:name|key|variable)[\\"']*\s*(?:[:=]|=?>)\s*[\\"']*$`)
	pairValue = regexp.MustCompile(`^[\\"']*[,;]?[\s\\"'/#]*(?i:value|val|default|defaultValue|content|values|string)[\\"']*\s*[:=]`)
)

// elementValue matches what is between a name and its value in XML: <name>a</name> <value>b, <property name="a"><value>b.
var elementValue = regexp.MustCompile(`^(?:["']\s*>|</[\w:.-]+>)\s*<(?:[\w.-]+-)?(?i:value|string)`)

// paired finds the value of a pair.
func (t *search) paired(from, to int) (text, bool) {
	if begin := strings.TrimRight(t.s[max(0, from-8):from], " \t\n\\\"'"); begin == "" || strings.IndexByte(":=>", begin[len(begin)-1]) < 0 || !pairName.MatchString(t.s[max(0, from-32):from]) {
		return text{}, false
	}
	rest := t.s[to:min(len(t.s), to+maxGap)]
	if at := elementValue.FindString(rest); at != "" {
		return elementAt(t.s, to+len(at))
	}
	at := pairValue.FindStringIndex(rest)
	if at == nil {
		return text{}, false
	}
	return t.valueAt(to + at[1])
}
