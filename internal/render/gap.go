package render

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// gap prints missed versions, except if one notice sums up many gaps.
func (t *Text) gap(c change.Change) {
	if c.Away {
		t.counts.Away++
		return
	}
	t.counts.Shown++
	r := row{sign: signNotice, name: t.inCluster(c) + t.gapText(c), changes: numbers{c.Seq}}
	r.span(c)
	t.begin(r)
}

// versionChange matches the reason of a gap between two API versions of a kind; see package capture.
var versionChange = regexp.MustCompile(`not served as (\S+), now as ([^\s,]+)`)

// gapText describes what was missed.
func (t *Text) gapText(c change.Change) string {
	where := ""
	if c.Namespace != "" {
		where = " (namespace " + c.Namespace + ")"
	}
	g := c.Gap
	if g == nil {
		g = &event.GapInfo{}
	}
	if v := versionChange.FindStringSubmatch(g.Reason); v != nil {
		return t.typeName(c.Kind, c.Names) + where + ": served as " + v[2] + " now, instead of " + v[1] + "; what changed in between, if anything, shows as net changes"
	}
	missed := "versions were not seen"
	switch {
	case g.From != "" && adjacent(g.From, g.To):
		missed = "versions after " + g.From + " may not have been seen"
	case g.From != "" && g.To != "":
		missed = "versions between " + g.From + " and " + g.To + " were not seen"
	case g.From != "":
		missed = "versions after " + g.From + " were not seen"
	}
	if g.Reason != "" {
		missed += ": " + reasons(g.Reason)
	}
	return t.typeName(c.Kind, c.Names) + where + ": " + missed + "; the net change, if any, follows"
}

// adjacent reports whether no version lies between two, which were both seen.
func adjacent(from, to string) bool {
	a, errA := strconv.ParseUint(from, 10, 64)
	b, errB := strconv.ParseUint(to, 10, 64)
	return from == to || errA == nil && errB == nil && a+1 == b
}

// reasons describes the reasons of a gap.
func reasons(reason string) string {
	all := strings.Split(reason, ", ")
	for i, r := range all {
		switch r { // the Reason constants of package informer
		case "expired":
			all[i] = "the API server no longer had them"
		case "history-changed":
			all[i] = "the API server's history was replaced"
		case "missed":
			all[i] = "an audit found changes that the watch had not shown"
		case "unreadable":
			all[i] = "the API server sent something unreadable"
		case "unverified":
			all[i] = "the state on disk could not be verified against the API server's history"
		case "watch-failed":
			all[i] = "the watch kept failing"
		case "not served":
			all[i] = "the kind was not served for a while"
		case "API version changed":
			all[i] = "the API server serves another version of the kind"
		}
	}
	return strings.Join(all, ", ")
}
