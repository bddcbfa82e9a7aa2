package report

import (
	"strings"

	"github.com/tattler-dev/tattler/internal/control"
)

// clusters writes the state of each of several clusters.
func (p *page) clusters(all []control.Cluster) {
	p.line("")
	for i := range all {
		c := &all[i]
		title, live := "", "recorded"
		if i == 0 {
			title = "Clusters"
		}
		switch {
		case c.Away != "":
			live = "cannot be watched for " + age(p.now.Sub(c.AwaySince))
		case !c.Settled:
			live = "starting: not everything is recorded yet"
		}
		p.line("%-*s%s: %s", indent, title, clean(c.Name), live)
		if c.Away != "" {
			p.text(indent+2, "%s", c.Away)
		}
		if len(c.UnfilledRules) > 0 {
			p.text(indent+2, "Redaction rules name kinds that it does not have (yet): %s", strings.Join(c.UnfilledRules, ", "))
		}
	}
}

// names returns the names of what a daemon records.
func names(s *control.Status) string {
	if len(s.Clusters) == 0 {
		return clean(s.Cluster)
	}
	var all []string
	for i := range s.Clusters {
		all = append(all, clean(s.Clusters[i].Name))
	}
	return strings.Join(all, ", ")
}
