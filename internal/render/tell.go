package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/story"
)

// Wording is a story in words.
type Wording struct {
	// Text says what happened, the problem first. Brief leaves out the Message of the object that fails, which may be long.
	Text, Brief, Message string
	// Severity is failure or warning while something is wrong, or if it stayed so to the end; recovery once it has passed.
	Severity event.Severity
	// At is when the story came to where it stands; Until is set if only an interval is known, which began At.
	At, Until time.Time
	// Changes is how many changes it covers.
	Changes int
	// Silent stories need no line: the line of a change says the same, or nobody waits for it.
	Silent bool
}

// Tell puts a story into words, which depend on nothing else, so that all readers at any time read the same. now, which may be
// the zero time, decides only whether a story that has just begun needs a line yet.
func Tell(s *story.Tree, now time.Time) Wording {
	t := teller{s: s, now: s.State.Severity, at: s.Latest(), changes: s.Changes, facts: s.Now()}
	if t.at.Equal(s.State.At) {
		t.since = s.State.Since
	}
	for i := range s.Parts {
		t.part(&s.Parts[i])
	}
	brief := t
	brief.brief = true
	words := Wording{Text: t.text(), Brief: brief.text(), Severity: t.severity(), At: t.at, Changes: t.changes}
	words.Silent = words.Text == "" || t.silent(now)
	if !t.since.IsZero() {
		words.At, words.Until = t.since, t.at
	}
	if words.Text != words.Brief {
		words.Message = t.message()
	}
	return words
}

// teller sums up a story and its parts.
type teller struct {
	s     *story.Tree
	facts story.Facts // of its object, as it is

	created, leaving, gone int            // pods
	evicted                map[string]int // pods, by their nodes
	failing, failed        problems       // now, and before
	reports                []*story.Story // Kubernetes Events
	other                  map[string]int // objects that are gone, by kind
	now, was               event.Severity // of what is wrong, and of what was
	at, since              time.Time
	changes                int
	brief                  bool
}

// message is what the object says that fails.
func (t *teller) message() string {
	switch s := t.s; {
	case t.failing.first != nil:
		return t.failing.message()
	case s.Kind == story.Report || bad(s.State.Severity):
		return strings.TrimSpace(s.State.Facts.Message)
	case s.Open() && len(t.reports) > 0:
		return strings.TrimSpace(t.reports[len(t.reports)-1].State.Facts.Message)
	case t.failed.first != nil:
		return t.failed.message()
	}
	return t.s.Facts.Message
}

// because adds a message to a reason, unless it is left out.
func (t *teller) because(reason, message string) string {
	if message = strings.TrimSpace(message); t.brief {
		message = ""
	}
	return joined(reason, ": ", message)
}

// problems counts objects by what is wrong with them.
type problems struct {
	counts map[string]int
	first  *story.Story // the first one
}

func (p *problems) add(s *story.Story, reason string) {
	if p.counts == nil {
		p.counts = map[string]int{}
	}
	p.counts[strings.ToLower(s.Object.Kind.Kind)+" "+reason]++
	if p.first == nil {
		p.first = s
	}
}

// words are such as "2 pods CrashLoopBackOff"; of a single problem, the message comes with it.
func (p *problems) words(t *teller) string {
	var all []string
	for _, of := range slices.Sorted(maps.Keys(p.counts)) {
		kind, reason, _ := strings.Cut(of, " ")
		all = append(all, plural(p.counts[of], kind)+" "+reason)
	}
	text := strings.Join(all, ", ")
	if len(all) == 1 {
		text = t.because(text, p.message())
	}
	return text
}

func (p *problems) message() string {
	if p.first.State.Word == story.Failing {
		return p.first.State.Facts.Message
	}
	return p.first.Facts.Message
}

func (t *teller) part(p *story.Story) {
	t.changes += p.Changes
	switch kind := p.Object.GroupKind(); {
	case kind == "Pod":
		t.pod(p)
	case p.Kind == story.Report:
		t.reports = append(t.reports, p)
		return
	case p.Kind == story.Deletion && !p.Open() && kind != "ReplicaSet.apps":
		if t.other == nil {
			t.other = map[string]int{}
		}
		t.other[strings.ToLower(p.Object.Kind.Kind)]++
	}
	t.was = worst(t.was, p.Worst)
	if t.s.Kind == story.Deletion && p.Latest().After(t.at) {
		t.at, t.since = p.Latest(), p.State.Since
	}
	switch {
	case p.State.Severity == event.Normal || p.State.Severity == event.Recovery:
		if p.Worst != event.Normal {
			t.failed.add(p, p.Facts.Reason)
		}
		return
	case p.State.Word == story.Failing:
		t.failing.add(p, p.State.Facts.Reason)
		t.now = worst(t.now, p.State.Severity)
	default:
		t.failed.add(p, p.State.Facts.Reason)
	}
	if p.Latest().After(t.at) {
		t.at, t.since = p.Latest(), p.State.Since
	}
}

// pod counts what became of a pod.
func (t *teller) pod(p *story.Story) {
	switch {
	case p.Kind == story.Start && !p.Unknown:
		t.created++
	case p.Kind == story.Deletion && p.Open():
		t.leaving++
	case p.Kind == story.Deletion:
		t.gone++
	}
	if p.Kind == story.Deletion && p.State.Facts.Evicted {
		if t.evicted == nil {
			t.evicted = map[string]int{}
		}
		t.evicted[p.State.Facts.Node]++
	}
}

func worst(a, b event.Severity) event.Severity {
	if severityRank(b) > severityRank(a) {
		return b
	}
	return a
}

// bad reports whether a severity is failure or warning.
func bad(s event.Severity) bool { return s == event.Failure || s == event.Warning }

func (t *teller) severity() event.Severity {
	s := t.s
	was := worst(s.Worst, t.was)
	switch {
	case bad(t.now):
		return t.now
	case s.Open() || !bad(was):
		return event.Normal
	case s.State.Word == story.Done:
		return event.Recovery
	}
	return worst(s.Worst, event.Normal) // it stayed so to the end
}

// silent reports whether the story needs no line.
func (t *teller) silent(now time.Time) bool {
	s := t.s
	switch {
	case s.Object.GroupKind() == "ControllerRevision.apps":
		return true
	case bad(s.Worst) || bad(t.was):
		return s.Kind == story.Deletion && s.State.Word == story.Gone && len(s.Parts) == 0 && s.Owner == nil
	case s.Kind == story.Status && t.facts.Was == "" && (t.facts.Pods != nil || s.Object.GroupKind() == "Pod" || s.Object.GroupKind() == "Job.batch"):
		return true // what matters of their state has stories of its own
	case s.Open() && (s.Kind == story.Start || s.Kind == story.Deletion && s.Owner != nil):
		return now.Sub(s.Begin) < startTime
	case s.Kind == story.Drain:
		return t.leaving+t.gone == 0
	case s.Kind == story.Deletion:
		return !s.Open() && (len(s.Parts) == 0 && s.Owner == nil || s.Owner != nil && ended[s.State.Facts.Word])
	case s.State.Word == story.Superseded:
		return s.Kind == story.Start || s.Kind == story.Status || s.Kind == story.Incident
	}
	return false
}

// startTime is how long an object may take to start or to end before that is worth a line.
const startTime = 30 * time.Second

// ended are the states of pods and Jobs that have nothing to do any more: their deletion is no news.
var ended = map[string]bool{"Succeeded": true, "Failed": true, "Complete": true}

func (t *teller) text() string {
	said := t.self()
	var why string
	switch s := t.s; {
	case t.failing.first != nil:
		why = t.failing.words(t)
	case s.Open() && len(t.reports) > 0 && s.State.Severity != event.Failure:
		why = t.report(t.reports[len(t.reports)-1])
	case t.failed.first != nil && !s.Open() && s.Kind != story.Deletion:
		return joined(said, "; before that: ", t.failed.words(t))
	}
	if why == "" {
		return said
	}
	return joined(why, "; ", said)
}

// report is a Kubernetes Event in words.
func (t *teller) report(s *story.Story) string {
	f := &s.State.Facts
	text := t.because(f.Reason, f.Message)
	if f.Count > 1 {
		over := ""
		if d := s.State.At.Sub(s.Begin); d >= time.Second {
			over = " in " + Duration(d)
		}
		text += fmt.Sprintf(" (%d times%s)", f.Count, over)
	}
	return text
}

// self says what became of the object.
func (t *teller) self() string {
	s := t.s
	var said string
	switch {
	case s.Kind == story.Report:
		return t.report(&s.Story)
	case s.Kind == story.Deletion:
		return t.deletion()
	case s.Kind == story.Status:
		return t.status()
	case t.facts.Pods != nil:
		said = t.workload()
	case s.Kind == story.Run:
		said = t.run()
	case s.Kind == story.Drain:
		said = t.drain()
	default:
		said = t.single()
	}
	return list(said, t.via())
}

// via names what explains the story: a node that is not ready, or that was drained.
func (t *teller) via() string {
	var all []string
	for i := range t.s.Via {
		v := &t.s.Via[i]
		name := strings.ToLower(v.Object.Kind.Kind) + " " + v.Object.Name
		switch v.Kind {
		case story.Drain:
			all = append(all, "by the drain of "+v.Object.Name)
		case story.Deletion:
			all = append(all, name+" is being deleted")
		case story.Incident:
			all = append(all, name+" "+v.Facts.Reason)
		}
	}
	return strings.Join(all, ", ")
}

func (t *teller) took() string {
	if t.s.Unknown || t.s.Open() || t.s.Facts.Since != nil || !t.s.State.Since.IsZero() {
		return ""
	}
	return distance(t.s.Begin, t.s.End)
}

// after is took as "after 5 s".
func (t *teller) after() string {
	if rest, ok := strings.CutPrefix(t.took(), "in "); ok {
		return "after " + rest
	}
	return t.took()
}

// wrong is what is wrong with the object itself.
func (t *teller) wrong() string {
	f := &t.facts
	if t.s.State.Word != story.Failing && t.s.State.Word != story.Failed {
		return ""
	}
	switch {
	case t.failing.first != nil && t.s.State.Severity != event.Failure: // they say more
		return ""
	case t.failing.first != nil:
		return f.Reason
	}
	return t.because(f.Reason, f.Message)
}

// workload says how a workload's pods came, went and failed.
func (t *teller) workload() string {
	s := t.s
	p := t.facts.Pods
	ready := fmt.Sprintf("%d/%d ready", p.Ready, p.Wanted)
	pods := list(ready, t.pods())
	var said string
	switch s.Kind {
	case story.Scale:
		said = "scaled"
		if s.Facts.From != nil {
			said = fmt.Sprintf("scaled %d → %d", *s.Facts.From, p.Wanted)
		}
		said = joined(said, " ", t.took()) + ": " + pods
	case story.Rollout, story.Start:
		said = t.rollout(pods)
	default:
		switch {
		case !s.Open() && s.State.Word == story.Done:
			said = list(ready+" again", t.after(), t.pods())
		case s.Facts.From != nil && *s.Facts.From != p.Ready:
			said = list(fmt.Sprintf("%d/%d → %s", *s.Facts.From, p.Wanted, ready), t.pods())
		default:
			said = pods
		}
	}
	if wrong := t.wrong(); wrong != "" {
		return joined(wrong, "; ", said)
	}
	return said
}

func (t *teller) rollout(pods string) string {
	s := t.s
	p := t.facts.Pods
	done, going := "rolled out", "rolling out"
	if s.Facts.Back {
		done, going = "rolled back", "rolling back"
	}
	if len(s.Facts.Images) == 1 && s.Facts.Back {
		done += " to " + s.Facts.Images[0].To
	}
	switch {
	case s.Open() && (s.Object.GroupKind() == "ReplicaSet.apps" || s.Object.GroupKind() == "ReplicationController"): // all its pods have its template
		return going + ": " + pods
	case s.Open():
		return fmt.Sprintf("%s: %d/%d updated, %s", going, p.Updated, p.Wanted, pods)
	case s.State.Word == story.Superseded:
		return "not rolled out to the end: " + pods
	case s.State.Word == story.Done:
		return joined(done, " ", t.took()) + ": " + pods
	}
	return "gone while " + going + ": " + pods
}

// run says how a Job ran.
func (t *teller) run() string {
	s := t.s
	f := &t.facts
	switch s.State.Word {
	case story.Done:
		took := t.took()
		if f.Started != nil && took != "" {
			took = distance(*f.Started, s.End)
		}
		return joined(strings.ToLower(f.Word), " ", took)
	case story.Failed, story.Failing:
		return t.because(joined("failed", ": ", f.Reason), f.Message)
	case story.Superseded, story.Gone:
		if bad(s.Worst) {
			return t.because(joined("failed", ": ", s.Facts.Reason), s.Facts.Message)
		}
		return "gone before it was complete"
	}
	return "running"
}

// drain says what became of the pods of a node that takes pods no longer.
func (t *teller) drain() string {
	said := "takes no more pods"
	if !t.s.Open() {
		said = list("takes pods again", t.after())
	}
	if n := t.leaving + t.gone; n > 0 {
		said += fmt.Sprintf(", %s evicted", plural(n, "pod"))
	}
	if wrong := t.wrong(); wrong != "" {
		return joined(wrong, "; ", said)
	}
	return said
}

// single says what became of an object by itself, such as a pod.
func (t *teller) single() string {
	s := t.s
	f := &t.facts
	if wrong := t.wrong(); wrong != "" {
		return list(wrong, t.restarts(), t.place())
	}
	word := f.Word
	switch {
	case s.State.Word == story.Superseded || s.State.Word == story.Gone || s.State.Word == story.Left:
		if s.Kind == story.Start {
			return list(t.place(), s.Facts.Reason, "was never ready")
		}
		return list(t.because(s.Facts.Reason, s.Facts.Message), nextWords[f.Next])
	case s.Facts.Reason != "":
		word = list(s.Facts.Reason+" → "+f.Word, t.after())
	case s.Kind == story.Start && s.Open():
	case s.Kind == story.Start:
		word = joined("Pending → "+f.Word, " ", t.took())
	}
	return list(t.place(), word, t.restarts())
}

// nextWords say what ended a story.
var nextWords = map[story.Kind]string{story.Deletion: "then deleted", story.Rollout: "then rolled out anew", story.Scale: "then scaled", story.Drain: "then drained"}

// place says that a pod is new, and where.
func (t *teller) place() string {
	if t.s.Kind != story.Start || t.s.Unknown {
		return ""
	}
	return joined("new", " on ", t.s.State.Facts.Node)
}

func (t *teller) restarts() string {
	if n := t.facts.Restarts; n > 0 {
		return plural(n, "restart")
	}
	return ""
}

// status says how the state of an object changed.
func (t *teller) status() string {
	f := &t.facts
	word := ""
	switch was := t.s.Facts.Was; {
	case was != "" && f.Word != "" && was != f.Word:
		word = was + " → " + f.Word
	case was == "" && f.Word != "" && t.s.Changes > 1:
		word = f.Word
	}
	if field := fieldWords(f.Field); f.Was == "" && field != word {
		return list(word, field)
	}
	return word
}

// fieldWords says what became of a field.
func fieldWords(f *story.Field) string {
	switch {
	case f == nil:
		return ""
	case f.Path == "":
		return f.Text
	case f.Text != "":
		return f.Path + ": " + f.Text
	case f.From == f.To:
		return f.Path + ": changed and back"
	}
	return f.Path + ": " + f.From + " → " + f.To
}

func (t *teller) deletion() string {
	s := t.s
	said := "terminating"
	switch {
	case s.Open() && len(s.State.Facts.Waits) > 0:
		said += ", waits for finalizers: " + strings.Join(s.State.Facts.Waits, ", ")
	case s.Open():
	case s.Owner == nil: // the line of its deletion says the rest
		said = ""
	case s.State.Facts.Evicted:
		said = joined("evicted", " from ", s.State.Facts.Node)
	default:
		said = "gone"
	}
	if s.Owner != nil && !s.Open() && s.Facts.Created != nil && s.State.Since.IsZero() {
		said += " after " + Duration(s.End.Sub(*s.Facts.Created))
	}
	if s.Facts.Ended == story.Start && s.Object.GroupKind() == "Pod" {
		said = list(said, "was never ready")
	}
	return list(append([]string{said, t.pods()}, t.others()...)...)
}

// others counts the objects other than pods that are gone.
func (t *teller) others() (all []string) {
	for _, kind := range slices.Sorted(maps.Keys(t.other)) {
		all = append(all, plural(t.other[kind], kind)+" gone")
	}
	return all
}

// pods says how many pods came and went.
func (t *teller) pods() string {
	var parts []string
	evicted := 0
	for _, node := range slices.Sorted(maps.Keys(t.evicted)) {
		evicted += t.evicted[node]
		parts = append(parts, fmt.Sprintf("%d evicted from %s", t.evicted[node], node))
	}
	gone := t.gone - evicted
	switch {
	case evicted > 0 && t.created == evicted && gone == 0 && t.leaving == 0:
		return strings.Join(parts, ", ") + " and replaced"
	case t.created > 0 && t.created == gone && t.leaving == 0:
		parts = append(parts, plural(t.created, "pod")+" replaced")
		return strings.Join(parts, ", ")
	case t.created > 0 && t.s.Kind != story.Start:
		parts = append(parts, plural(t.created, "pod")+" new")
	}
	if gone > 0 {
		parts = append(parts, plural(gone, "pod")+" gone")
	}
	if t.leaving > 0 {
		parts = append(parts, plural(t.leaving, "pod")+" terminating")
	}
	return strings.Join(parts, ", ")
}

// list joins the parts that are not empty.
func list(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}
