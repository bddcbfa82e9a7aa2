package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

func (t *Text) absence(c change.Change) {
	t.counts.Shown++
	t.begin(row{at: c.Since, until: c.At, sign: signNotice, name: t.inCluster(c) + absenceText(c), changes: numbers{c.Seq}})
}

// inCluster begins a notice about one of several clusters.
func (t *Text) inCluster(c change.Change) string {
	if !t.o.Clusters {
		return ""
	}
	return "cluster " + c.Kind.ClusterOr(t.o.Cluster) + ": "
}

// absenceText describes why nothing was recorded for a while, and whether anything was lost.
func absenceText(c change.Change) string {
	a := c.Absence
	if a == nil {
		a = &event.Absence{}
	}
	lasted := c.At.Sub(c.Since)
	length := Duration(lasted)
	text := "tattler was not running for at most " // nothing records the time of a kill, so the last sign of life counts
	switch a.Reason {
	case event.AbsenceUnwritten:
		text = "tattler could not write its journal for "
	case event.AbsenceUnreachable:
		text = "tattler could not reach the API server for "
	default:
		if lasted < time.Second { // the clock may have been set back
			text = strings.TrimSuffix(text, "at most ")
		} else {
			length = UpperBound(lasted)
		}
	}
	text += length + ": "
	switch {
	case a.Incomplete == 1:
		text += "it caught up with " + plural(a.Changes, "change") + ", but 1 kind is incomplete: it has a gap, or cannot be watched"
	case a.Incomplete > 1:
		text += fmt.Sprintf("it caught up with %s, but %d kinds are incomplete: they have gaps, or cannot be watched", plural(a.Changes, "change"), a.Incomplete)
	case a.Changes > 0:
		text += "it caught up with " + plural(a.Changes, "change") + ", and missed none"
	default:
		text += "nothing changed meanwhile"
	}
	return text
}
