package scope

import (
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
)

// Severities are the values of --severity.
var Severities = []string{string(event.Failure), string(event.Warning), string(event.Recovery), string(event.Normal)}

// ValidSeverities checks the values of --severity.
func ValidSeverities(list []string) error {
	for _, s := range list {
		if !slices.Contains(Severities, s) {
			return capture.Usage("--severity is never %q; it is one of %s", s, strings.Join(Severities, ", "))
		}
	}
	return nil
}

// HasSeverity reports whether a change has one of the severities; an empty list is all of them. A gap always is
// shown: what was missed may have any.
func HasSeverity(list []string, c *change.Change) bool {
	return len(list) == 0 || c.Op == event.Gap || slices.Contains(list, string(c.Severity()))
}

// SeveritiesOf are the values of --severity as events have them.
func SeveritiesOf(list []string) []event.Severity {
	all := make([]event.Severity, len(list))
	for i, s := range list {
		all[i] = event.Severity(s)
	}
	return all
}
