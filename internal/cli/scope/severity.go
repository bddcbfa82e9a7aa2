package scope

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// Severities are the values of --severity.
var Severities = []string{string(event.Failure), string(event.Warning), string(event.Recovery), string(event.Normal)}

// ValidSeverities checks names of severities. The caller adds the name of the flag or parameter to an error.
func ValidSeverities(list []string) error {
	for _, s := range list {
		if !slices.Contains(Severities, s) {
			return fmt.Errorf("unknown severity %q: use one of %s", s, strings.Join(Severities, ", "))
		}
	}
	return nil
}

// HasSeverity reports whether a change has one of the severities; an empty list means all. A gap always matches, because
// the missed changes may have any.
func HasSeverity(list []string, c *change.Change) bool {
	return len(list) == 0 || c.Op == event.Gap || slices.Contains(list, string(c.Severity()))
}

// SeveritiesOf converts the values of --severity.
func SeveritiesOf(list []string) []event.Severity {
	all := make([]event.Severity, len(list))
	for i, s := range list {
		all[i] = event.Severity(s)
	}
	return all
}
