package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
)

// longer replaces the first short names of built-in kinds that read badly.
var longer = map[string]string{"po": "pod", "no": "node", "ep": "endpoints", "ev": "event"}

// typeName returns the printed name of a kind: its first short name, or its singular. If another group's kind has the same
// name, the group is added.
func (t *Text) typeName(r change.Kind, names change.Names) string {
	id := r.Resource + "." + r.Group
	if n, ok := t.names[id]; ok {
		return n
	}
	n := TypeName(r, names)
	for _, taken := range t.names {
		if taken == n {
			n = names.Singular + "." + r.Group
			break
		}
	}
	t.names[id] = n
	return n
}

// builtIn reports whether a group belongs to Kubernetes itself. Others have their owner's domain.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// Duration formats a duration for people: "14 s", "1 h 4 min", "41 d". It has at most two units, in whole numbers.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(n time.Duration, unit string, rest time.Duration, small string) string {
		if rest == 0 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		return fmt.Sprintf("%d %s %d %s", n, unit, rest, small)
	}
	switch {
	case d < time.Second:
		return "less than 1 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(d/time.Minute, "min", d%time.Minute/time.Second, "s")
	case d < day:
		return two(d/time.Hour, "h", d%time.Hour/time.Minute, "min")
	case d < 8*day:
		return two(d/day, "d", d%day/time.Hour, "h")
	case d < 2*365*day:
		return fmt.Sprintf("%d d", d/day)
	}
	return two(d/(365*day), "y", d%(365*day)/day, "d")
}

// UpperBound is like Duration, for a duration that was at most d: it is rounded up, where Duration rounds down.
func UpperBound(d time.Duration) string {
	const day = 24 * time.Hour
	for _, up := range []struct{ below, unit time.Duration }{{time.Hour, time.Second}, {day, time.Minute}, {8 * day, time.Hour}} {
		if d < up.below {
			return Duration(roundUp(d, up.unit))
		}
	}
	return Duration(roundUp(d, day))
}

func roundUp(d, unit time.Duration) time.Duration {
	if down := d.Truncate(unit); down < d {
		return down + unit
	}
	return d
}

func plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// TypeName is the printed name of a kind: its short name, unless that says too little. Of several kinds with one name,
// lines name the group of all but the first.
func TypeName(r change.Kind, names change.Names) string {
	n := names.Short
	if l, ok := longer[n]; ok && builtIn(r.Group) {
		n = l
	}
	if len(n) < 2 {
		n = names.Singular
	}
	if n == "" {
		n = strings.ToLower(r.Kind)
	}
	return n
}
