package report

import (
	"fmt"
	"io"
	"time"

	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
)

// Letters writes dead letters, in so many columns; 0 is 80.
func Letters(w io.Writer, letters []sinkadmin.Letter, now time.Time, width int) error {
	p := newPage(width, now)
	for _, l := range letters {
		what := "the journal no longer has the change"
		if l.Kept {
			what = l.Op + " " + l.Resource
			if l.Name != "" {
				what += " " + l.Name
			}
			if l.Namespace != "" {
				what += " in " + l.Namespace
			}
		}
		p.line("%s  %s", clean(l.ID), clean(what))
		why := l.Reason
		if l.Attempts > 0 {
			why = fmt.Sprintf("after %s: %s", Count(int64(l.Attempts), "attempt"), l.Reason)
		}
		p.text(4, "%s (%s)", why, stamp(l.Since))
	}
	_, err := io.WriteString(w, p.String())
	return err
}
