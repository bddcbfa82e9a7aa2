package notify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/event"
)

// merged returns the stories, those of one owner as one, even if the owner became known later.
func (s *summary) merged(k owners) []*story {
	var all []*story
	into := map[string]*story{}
	for _, t := range s.stories {
		root := k.root(event.Owner{UID: t.uid})
		if root.UID == t.uid { // it has no owner
			own := *t // a copy: what is held may have to be sent again
			own.owned, own.members = maps.Clone(t.owned), slices.Clone(t.members)
			into[t.uid] = &own
			all = append(all, &own)
		}
	}
	for _, t := range s.stories {
		root := k.root(event.Owner{UID: t.uid})
		if root.UID == t.uid {
			continue
		}
		to := into[root.UID]
		if to == nil {
			to = &story{uid: root.UID, root: &root, space: t.space, owned: map[Count]int{}}
			into[root.UID] = to
			all = append(all, to)
		}
		to.changes += t.changes
		to.prominent = to.prominent || t.prominent
		if to.failure.uid == "" {
			to.failure = t.failure
			if t.failure.ofRoot { // the object was taken for the owner
				to.failure = t.failure.of(t.members[0].resource)
			}
		}
		for c, n := range t.owned {
			to.owned[c] += n
		}
		for _, m := range t.members { // taken for the owner, so not counted yet
			if m.uid == t.uid {
				to.owned[Count{Op: string(m.op), Kind: m.resource.Kind}] += m.changes
			}
			to.members = append(to.members, m)
		}
	}
	for _, t := range all {
		slices.SortFunc(t.members, func(a, b *member) int {
			isRoot := func(m *member) int { return map[bool]int{true: -1}[m.uid == t.uid] }
			return cmp.Or(cmp.Compare(isRoot(a), isRoot(b)), cmp.Compare(a.number, b.number))
		})
	}
	return all
}

// public returns the story for templates.
func (t *story) public(link func(id string) string) Story {
	last := slices.MaxFunc(t.members, func(a, b *member) int { return cmp.Compare(a.number, b.number) })
	out := Story{Prominent: t.prominent, Changes: t.changes, Namespace: t.space, Owned: counted(t.owned), ID: last.id, At: last.at, number: last.number}
	head := t.members[0]
	owned := 0
	for _, n := range t.owned {
		owned += n
	}
	switch {
	case head.uid == t.uid, len(t.members) == 1 && owned == head.changes: // the owner, or a single object that it owns
		if head.uid != t.uid {
			out.Owned = nil
		}
		out.Op, out.Kind, out.Namespace, out.Name = string(head.op), head.resource.Kind, head.resource.Namespace, head.resource.Name
		if head.story != nil && head.op != event.Deleted && head.op != event.Left {
			out.Text, out.Severity = clean(head.story.Text()), head.story.Severity()
		}
		out.Fields, out.MoreFields = head.listed(out.Text != "")
		out.Note = head.note
		out.ID, out.At, out.number = head.id, head.at, head.number
		slices.SortStableFunc(out.Fields, func(a, b Field) int { // spec before status
			return cmp.Compare(map[bool]int{true: 1}[a.isStatus()], map[bool]int{true: 1}[b.isStatus()])
		})
		out.Title = object(out)
		if out.Text == "" || head.op != event.Updated {
			out.Title += " " + happened(head.op, t.prominent)
		}
		if head.op == event.Gap {
			out.Title = "GAP: changes of " + head.resource.Resource + " were missed"
		}
		if head.op == event.Absent {
			out.Title, out.Note = head.note, ""
		}
	default:
		out.Kind, out.Name = t.root.Kind, t.root.Name
		out.Title = object(out) + ": changes of what it owns"
	}
	said := out.Text
	switch {
	case t.failure.uid == "" || said != "" && t.failure.ofRoot:
	case said != "": // the failure first
		said = t.failure.text + "; " + said
	default:
		said = t.failure.text
	}
	if len(out.Owned) > 0 && out.Op != "" && out.Text == "" {
		out.Title += fmt.Sprintf(", with %s of what it owns", plural(owned, "change"))
	}
	if said != "" {
		out.Title += ": " + said
	}
	out.Severity = t.severity(head.op, out.Severity)
	out.Link = link(out.ID)
	return out
}

// severity returns the severity of the story, given the severity of the root's own text.
func (t *story) severity(op event.Op, own event.Severity) event.Severity {
	switch {
	case t.failure.uid != "":
		return event.Failure
	case op == event.Gap:
		return event.Warning
	case own != "" && own != event.Normal:
		return own
	case t.prominent && !t.recovered():
		return event.Failure
	}
	return event.Normal
}

// recovered reports whether the story is prominent only because of something that has recovered.
func (t *story) recovered() bool {
	for _, m := range t.members {
		if m.op == event.Deleted || m.op == event.Gap || m.op == event.Absent {
			return false
		}
	}
	return true
}

// worst returns the severity of several stories: the worst, or recovery if all have recovered.
func worst(all []Story) event.Severity {
	recovered := true
	out := event.Normal
	for _, s := range all {
		switch {
		case s.Severity == event.Failure:
			return event.Failure
		case s.Severity == event.Warning:
			out = event.Warning
		}
		recovered = recovered && s.Severity == event.Recovery
	}
	if recovered {
		return event.Recovery
	}
	return out
}

// listed returns the fields that a message lists. If inWords is set, the title already describes the status.
func (m *member) listed(inWords bool) (fields []Field, more int) {
	for _, f := range m.fields {
		switch {
		case (f.Op == "replace" || f.Op == "reorder") && f.From == f.To && !strings.HasSuffix(f.To, "…"): // changed back
		case inWords && f.isStatus():
		default:
			fields = append(fields, f.Field)
		}
	}
	for _, isStatus := range m.others {
		if !inWords || !isStatus {
			more++
		}
	}
	return fields, more
}

// happened describes an operation for people.
func happened(op event.Op, prominent bool) string {
	switch op {
	case event.Entered:
		return "entered the selection"
	case event.Left:
		return "left the selection"
	case event.Snapshot:
		return "is there"
	case event.Converted:
		return "is served in another form"
	}
	if prominent {
		return strings.ToUpper(string(op))
	}
	return string(op)
}

func object(s Story) string {
	name := clean(s.Name)
	if s.Namespace != "" {
		name = clean(s.Namespace) + "/" + name
	}
	return strings.TrimSpace(clean(s.Kind) + " " + name)
}
