package redact

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// isElement reports whether the name is that of an XML element, also in a namespace.
func (a *assigned) isElement() bool {
	before := a.s[max(0, a.from-maxGap):a.from]
	if prefix, found := strings.CutSuffix(before, ":"); found {
		before = strings.TrimRightFunc(prefix, func(r rune) bool { return r < utf8.RuneSelf && isNameByte(byte(r)) })
	}
	return strings.HasSuffix(before, "<")
}

// opening matches what may be between an XML tag and a text: white space, comments, and another tag.
var opening = regexp.MustCompile(`^\s*(<!--[^>]*-->\s*)*(<(?:value|string)>\s*)?(<!\[CDATA\[)?\s*`)

// maxElement bounds the text of an XML element, in bytes.
const maxElement = 64 << 10

// inTag returns the text of the XML element whose tag ends before i.
func inTag(s string, i int) (text, bool) {
	i += len(opening.FindString(s[i:min(len(s), i+maxGap)]))
	rest := s[i:min(len(s), i+maxElement)]
	if strings.HasSuffix(strings.TrimRight(s[:i], " \t\r\n"), "<![CDATA[") {
		end := strings.Index(rest, "]]>")
		return text{from: i, to: i + end}, end >= 0
	}
	n := strings.IndexByte(rest, '<')
	return text{from: i, to: i + n}, n >= 0 && strings.HasPrefix(s[i+n:], "</")
}

// inElement returns the text of an element beside the one whose text, a name, is from i to end: <name>x</name>
// <value>y</value>, or the other way round.
func inElement(s string, i, end int) (text, bool) {
	rest := s[end:min(len(s), end+maxGap*2)]
	if at := elementValue.FindStringIndex(rest); at != nil && strings.Count(rest[:at[0]], "<name") == 0 {
		return inTag(s, end+at[1])
	}
	begin := max(0, i-maxGap*2)
	before := s[begin:i]
	if all := elementValue.FindAllStringIndex(before, -1); len(all) > 0 {
		at := all[len(all)-1]
		if strings.Count(before[at[0]:], "</name>") == 0 && strings.Count(before[at[0]:], "</property>") == 0 {
			return inTag(s, begin+at[1])
		}
	}
	return text{}, false
}

// elementValue matches the tag of a value.
var elementValue = regexp.MustCompile(`<(?:value|string|Value)>`)
