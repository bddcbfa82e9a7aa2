package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/control"
)

// missingRights names the kinds for which rights are missing, one per line. It names no namespace and no object,
// because the endpoint is not authenticated; tattler status and tattler doctor do.
func missingRights(s *control.Status) (lines []string) {
	for i := range s.MissingRights {
		l := &s.MissingRights[i]
		line := "missing right: " + strings.Join(l.Verbs, ", ") + " " + l.Resource
		if l.Cluster != "" {
			line = "cluster " + l.Cluster + ": " + line
		}
		if !slices.Contains(lines, line) { // several namespaces or names
			lines = append(lines, line)
		}
	}
	if n := len(lines); n > maxKinds {
		lines = append(lines[:maxKinds], fmt.Sprintf("and %d more missing rights", n-maxKinds))
	}
	return lines
}
