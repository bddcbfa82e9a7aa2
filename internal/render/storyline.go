package render

import (
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/story"
)

// Story prints the line of a story, unless it needs none at this time.
func (t *Text) Story(s *story.Tree, now time.Time) error {
	words := Tell(s, now)
	if words.Silent {
		return t.write()
	}
	o := &s.Object
	r := row{
		at: words.At, until: words.Until, sign: signFolded, cluster: o.ClusterOr(t.o.Cluster), namespace: o.Namespace, owned: s.Owner != nil,
		name: t.typeName(o.Kind, o.Names) + "/" + o.Name, info: words.Text, severity: words.Severity,
		object: Object{o.Group, o.Resource, o.Kind.Kind, o.Namespace, o.Name, o.Cluster},
	}
	if s.Kind == story.Report {
		r.owned, r.name = false, s.Facts.About
	}
	r.count = "(" + plural(words.Changes, "change") + ")"
	if words.Changes > 1 {
		r.hint = "--flat"
		if t.o.StoryIDs {
			r.hint = "--story " + s.ID[:min(idShown, len(s.ID))]
		}
	}
	rest, message := "", ""
	if t.o.Each == nil && !t.fits(r) {
		r.info, message = words.Brief, words.Message
		r.info, rest = t.firstPart(r)
	}
	t.begin(r)
	for _, text := range []string{rest, message} {
		for _, line := range wrap(text, t.o.Width-detailIndent) {
			t.line(t.detail(plain, line))
		}
	}
	return t.write()
}

// fits reports whether the line of a row is complete, apart from its hint and its count.
func (t *Text) fits(r row) bool {
	r.hint, r.count = "", ""
	return t.o.Width == 0 || width(t.unstyled().head(r)) < t.o.Width || !strings.HasSuffix(t.unstyled().head(r), "…")
}

// unstyled returns a text that lays lines out in the same way, without colours.
func (t *Text) unstyled() *Text {
	u := *t
	u.o.Color = false
	return &u
}

// firstPart splits the description of a row where what comes before fits.
func (t *Text) firstPart(r row) (first, rest string) {
	whole := r.info
	for cut := len(whole); cut > 0; cut = max(strings.LastIndex(whole[:cut], "; "), strings.LastIndex(whole[:cut], ", ")) {
		if r.info = whole[:cut]; t.fits(r) {
			return whole[:cut], strings.TrimLeft(whole[cut:], ",; ")
		}
	}
	return whole, ""
}

// wrap breaks a text into lines of some columns, between words.
func wrap(text string, columns int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && width(line)+1+width(word) > columns {
			lines = append(lines, line)
			line = ""
		}
		line = joinWords(line, word)
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func joinWords(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}
