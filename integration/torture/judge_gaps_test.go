package torture

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// The judge accepts a gap only where the torture made it necessary, and only as wide as that. The observer, an HTTPS
// proxy that the daemon takes for the API server, records each list and watch of each run, and each 410 with the version
// that was requested. A gap needs one of these causes:
//
//   - expired: a 410 on that stream, at the version where the gap begins, after a restart or a compaction that explains
//     it. The server's version afterwards is recorded; from there on the journal must be complete;
//   - history-changed or unverified: an etcd backup that was restored;
//   - not served: a 404 while the server starts;
//   - a list was interrupted: a first list, or a list after such a 410 or 404, that was not recorded to its end.
//
// Every other gap fails the run, with the daemon's requests and what was done to the server around it. So does a loss
// beside the versions of a necessary gap. TestTortureKills leaves the server alone and kills the daemon every 0.3 to 3 s
// at 100 to 300 writes a second: there must be no gap at all. Each time that the daemon did not run has an absence, and so
// has each outage of the API server whose end the daemon lived to see. No absence is without a cause, and no two overlap.

// judgedGap is a gap and the judge's findings about it.
type judgedGap struct {
	row
	missed span // the versions that it excuses
	none   bool // it excuses nothing
}

func (g *judgedGap) String() string {
	s := fmt.Sprintf("%d gap in %s of %s, %q, from %q to %q, between %s and %s", g.seq, g.kind, orAll(g.namespace),
		g.gap.Reason, g.gap.From, g.gap.To, clock(g.since), clock(g.at))
	if g.none {
		return s + ", which excuses nothing"
	}
	return s + fmt.Sprintf(", which excuses versions after %q, up to %q", g.missed.from, g.missed.to)
}

func orAll(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return namespace
}

// gapRow judges a gap: an action on the server must have made it necessary, and it must not be wider than that.
func (j *judge) gapRow(r row) {
	if r.gap == nil || r.gap.Reason == "" {
		j.find(groundless, "a gap without a reason: %v", &r)
		return
	}
	reasons := strings.Split(r.gap.Reason, ", ")
	t := r.at.Add(time.Millisecond) // the journal truncates to milliseconds
	recorded := j.recorded[stream{r.kind, r.namespace}]
	why := j.causes.gapCause(r.kind, r.namespace, reasons, t, recorded)
	g := judgedGap{row: r, missed: span{later(r.gap.From, why.missed.from), why.missed.to}}
	g.none = len(why.needless) > 0 || why.missed.to == ""
	if to := r.gap.To; to != "" && compare(to, g.missed.to) < 0 {
		g.missed.to = to
	}
	if forks(r.gap.Reason) {
		g.missed.from = "" // versions of another history are not comparable
	}
	wrong := why.needless
	if len(wrong) == 0 {
		wrong = wider(&r, why, recorded)
	}
	if len(wrong) > 0 {
		j.find(needless, "%v: %s%s", &g, strings.Join(wrong, "; "), j.causes.around(r.kind, r.namespace, t))
	}
	j.gaps = append(j.gaps, g)
	if j.next != nil && forks(r.gap.Reason) && !j.forked[r.kind] {
		j.fork(r.kind)
	}
}

// wider returns the ways in which a gap exceeds its cause.
func wider(r *row, why cause, recorded string) (wide []string) {
	from, to := r.gap.From, r.gap.To
	if why.missed.to == "" {
		wide = append(wide, "no list followed it")
	} else if to != "" && compare(to, why.missed.to) > 0 {
		wide = append(wide, fmt.Sprintf("the list that followed it was at %s", why.missed.to))
	}
	if strings.Contains(r.gap.Reason, "a list was interrupted") {
		// It begins at the newest object that was kept, which may be older than the daemon's position.
		return wide
	}
	if why.refused != nil && !forks(r.gap.Reason) && !slices.Contains(why.refused, from) {
		wide = append(wide, fmt.Sprintf("the server refused to resume only from %v", why.refused[max(0, len(why.refused)-5):]))
	}
	if compare(from, recorded) < 0 {
		wide = append(wide, fmt.Sprintf("a later version, %s, is recorded", recorded))
	}
	return wide
}

// stream identifies a list-and-watch of the daemon; without a namespace, it covers all.
type stream struct{ kind, namespace string }

// sawRow updates a stream's position from a row of a watch.
func (j *judge) sawRow(r *row) {
	if r.derived || r.op == event.Snapshot {
		return
	}
	for _, s := range []stream{{r.kind, r.namespace}, {r.kind, ""}} {
		j.recorded[s] = later(j.recorded[s], r.version)
	}
}

// covers reports whether a gap excuses the absence of an object's version.
func (g *judgedGap) covers(t *timeline, s sighting) bool {
	if g.none || g.kind != t.kind || g.namespace != "" && g.namespace != t.namespace {
		return false
	}
	if !s.vague {
		return g.missed.has(s.version)
	}
	// Some version after s.after, up to this one, must be within the gap.
	return (g.missed.from == "" || compare(s.version, g.missed.from) > 0) && (s.after == "" || compare(s.after, g.missed.to) < 0)
}

// gapsBetween describes the gaps of an object's streams between two rows, to explain why they excuse nothing.
func (j *judge) gapsBetween(t *timeline, from, to int64) string {
	var b strings.Builder
	for i := range j.gaps {
		if g := &j.gaps[i]; g.kind == t.kind && (g.namespace == "" || g.namespace == t.namespace) && g.seq > from && g.seq < to {
			fmt.Fprintf(&b, "\n\tthere is %v", g)
		}
	}
	return b.String()
}

// reasons counts the gaps by reason.
func (j *judge) reasons() map[string]int {
	counts := map[string]int{}
	for i := range j.gaps {
		counts[j.gaps[i].gap.Reason]++
	}
	return counts
}
