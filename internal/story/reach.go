package story

import (
	"cmp"
	"encoding/base32"
	"encoding/binary"
	"hash/fnv"
	"time"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/event"
)

// begin begins a story with this change.
func (a *act) begin(kind Kind, at time.Time, mark string) *Story {
	in := a.in
	s := &Story{
		ID:   a.id(kind, mark),
		Kind: kind, Object: in.Object, Owner: in.Owner, Cause: in.Seq, Manager: in.Manager, Begin: cmp.Or(at, in.At), First: in.Seq, Worst: event.Normal,
	}
	if in.Op == event.Snapshot || in.Op == event.Entered {
		s.Cause, s.Manager = 0, ""
	}
	o := a.objects[a.node]
	if o == nil {
		o = &object{}
		a.objects[a.node] = o
		a.found(&in.Object)
	}
	o.stories = append(o.stories, s)
	a.byID[s.ID] = a.node
	st := State{Word: Began, At: s.Begin, Severity: event.Normal}
	s.Facts.Seen = s.Begin.Equal(in.At) && !in.Dated
	if s.Begin.Equal(in.At) && !in.From.Equal(in.At) {
		s.Facts.Since, st.Since = &in.From, in.From
	}
	a.reach(s, st)
	return s
}

// id makes the id of a story from what the object says.
func (a *act) id(kind Kind, mark string) string {
	h := fnv.New128a()
	for _, part := range []string{a.in.Object.ClusterOr(a.cluster), kind.String(), a.in.Object.UID, mark} {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		_, _ = h.Write([]byte(part))
	}
	return idAlphabet.EncodeToString(h.Sum(nil)[:10])
}

// idAlphabet is that of the ids of changes.
var idAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// reach adds a state to a story.
func (a *act) reach(s *Story, st State) {
	st.Seq, st.At = a.in.Seq, cmp.Or(st.At, a.in.At)
	a.facts(&st.Facts)
	s.State = st
	if st.Word.ends() {
		s.End = st.At
	}
	if rank(st.Severity) > rank(s.Worst) {
		s.Worst = st.Severity
		s.Facts.Reason, s.Facts.Message, s.Facts.Container = st.Facts.Reason, st.Facts.Message, st.Facts.Container
	}
	a.note(s, &st)
	a.raise(s, st.Seq, s.Worst)
	if st.Severity != event.Normal {
		a.raiseParent(s, st.Seq)
	}
	a.place(s)
}

// cover counts a change of a story that is no state of it.
func (a *act) cover() {
	if s := a.open(); s != nil {
		a.note(s, nil)
	}
}

// note records that a change belongs to a story.
func (a *act) note(s *Story, st *State) {
	if s.Last != a.in.Seq || s.Changes == 0 {
		s.Last, s.Moved = a.in.Seq, a.in.Seq
		s.Changes++
	}
	a.present(s)
	u := a.update(s)
	if st != nil {
		u.states = append(u.states, *st)
	}
}

// update returns the update of a story.
func (e *Engine) update(s *Story) *update {
	for i := range e.updates {
		if e.updates[i].story == s {
			return &e.updates[i]
		}
	}
	e.updates = append(e.updates, update{story: s})
	return &e.updates[len(e.updates)-1]
}

// facts adds what the object says.
func (a *act) facts(f *Facts) {
	in := a.in
	is := &in.Is
	if in.Op == event.Deleted {
		is = &in.Was
	}
	if f.Word, f.Restarts, f.Node, f.Evicted = is.Word, is.Restarts, in.Node, in.Evicted; in.Op == event.Updated && in.Was.Word != is.Word {
		f.Was = in.Was.Word
	}
	if !in.Started.IsZero() {
		f.Started = &in.Started
	}
	if !in.Asked.IsZero() && in.Op != event.Deleted {
		f.Waits = in.Finalizers
	}
	if workloads[in.Object.GroupKind()] {
		pods := is.Pods
		f.Pods = &pods
	}
}

// present brings up to date what a story says of its object.
func (a *act) present(s *Story) {
	var f Facts
	a.facts(&f)
	at := a.in.At
	s.Facts.Word, s.Facts.Pods, s.Facts.Restarts, s.Facts.At = f.Word, f.Pods, f.Restarts, &at
}

// since returns the beginning of the interval in which the change happened; zero if its time is known.
func (in *Input) since() time.Time {
	if in.From.Equal(in.At) {
		return time.Time{}
	}
	return in.From
}

// stamp writes a time as part of an id, in whole seconds as the server has it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// The longest messages and changes of states, in bytes.
const (
	longest       = 1000
	longestChange = 200
)

// cut shortens a text between two characters.
func cut(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	for !utf8.RuneStart(text[longest]) {
		longest--
	}
	return text[:longest] + "…"
}

func rank(s event.Severity) int {
	switch s {
	case event.Failure:
		return 3
	case event.Warning:
		return 2
	}
	return 0
}
