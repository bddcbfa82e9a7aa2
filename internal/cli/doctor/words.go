package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/setup"
)

// listed joins names, and cuts a long list.
func listed(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// volume is a number of bytes for people.
func volume(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// span is a time for people: 12s, 5m10s, 7h, 3d. It is rounded down.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= 3*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Second:
		return d.Truncate(time.Second).String()
	}
	return d.Truncate(time.Millisecond).String()
}

// upTo is like span, rounded up.
func upTo(d time.Duration) string {
	unit := time.Millisecond
	switch {
	case d >= 48*time.Hour:
		unit = 24 * time.Hour
	case d >= 3*time.Hour:
		unit = time.Hour
	case d >= time.Second:
		unit = time.Second
	}
	if down := d.Truncate(unit); down < d {
		d = down + unit
	}
	return span(d)
}

// sort groups the findings by section, and those of the API server and of the rights by cluster; within a section, they keep
// their order.
func (x *examination) sort() {
	order := []Section{Configuration, Server, Rights, JournalFile, Sinks, Memory, Daemon}
	place := func(f *Finding) (section, cluster, within int) {
		at := slices.Index(order, f.Section)
		if f.Section != Server && f.Section != Rights {
			return at, 0, 0
		}
		return slices.Index(order, Server), slices.IndexFunc(x.parts, func(p setup.Part) bool { return p.Name == f.Cluster }), at
	}
	slices.SortStableFunc(x.findings, func(a, b Finding) int {
		sectionA, clusterA, withinA := place(&a)
		sectionB, clusterB, withinB := place(&b)
		return cmp.Or(sectionA-sectionB, clusterA-clusterB, withinA-withinB)
	})
}
