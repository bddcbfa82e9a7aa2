package report

import (
	"fmt"

	"github.com/tattler-dev/tattler/internal/control"
)

// rights lists the missing rights; nothing if none is missing.
func (p *page) rights(s *control.Status) {
	if n := len(s.MissingRights); n > 0 {
		p.line("")
		p.line("%-*s%s", indent, "Rights", fmt.Sprintf("%d missing; tattler rbac prints the roles that grant them", n))
	}
	for i := range s.MissingRights {
		if i == maxRows {
			p.line("%*sand %d more (-o json has all)", indent, "", len(s.MissingRights)-i)
			break
		}
		l := &s.MissingRights[i]
		text := l.Text()
		if l.Without != "" {
			text += ": " + l.Without
		}
		p.text(indent, "%s", text)
	}
	if s.RightsError != "" {
		p.line("")
		p.line("%-*s%s", indent, "Rights", "not all are known")
		p.text(indent, "%s", s.RightsError)
	}
}
