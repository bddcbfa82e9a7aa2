package sink

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// Name makes a name, such as a subject or a topic, from an event. It is safe for concurrent use.
type Name struct {
	template *template.Template
	check    func(name string) error
}

// NewName compiles a text/template over the event, with the field names of package event, such as
// changes.{{.Data.Resource.Namespace}}. Clean rewrites what an action prints, so that an object's name cannot add
// a level to a subject; the literal text is left alone. Each name must pass check. Both may be nil. NewName runs the
// template on Samples, so that a wrong field is found before the first change.
func NewName(text string, clean func(value string) string, check func(name string) error) (*Name, error) {
	if clean == nil {
		clean = func(value string) string { return value }
	}
	t, err := template.New("name").Funcs(template.FuncMap{
		"lower": strings.ToLower,
		cleaner: func(v any) string { return clean(fmt.Sprint(v)) },
	}).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	AppendToActions(t, cleaner)
	n := &Name{template: t, check: check}
	for _, e := range Samples() {
		if _, err := n.Of(e); err != nil {
			return nil, fmt.Errorf("for an event with op %s: %w", e.Data.Op, err)
		}
	}
	return n, nil
}

// Of returns the name for an event. An error is permanent: the same event always causes it.
func (n *Name) Of(e *event.Event) (string, error) {
	var b strings.Builder
	if err := n.template.Execute(&b, e); err != nil {
		return "", err
	}
	name := b.String()
	if name == "" {
		return "", errors.New("the template makes an empty name")
	}
	if n.check != nil {
		if err := n.check(name); err != nil {
			return "", err
		}
	}
	return name, nil
}

const cleaner = "tattlerClean"

// AppendToActions appends the call of a function to every action that prints, also in the templates that a template defines.
func AppendToActions(t *template.Template, function string) {
	for _, one := range t.Templates() {
		if one.Tree != nil {
			appendTo(one.Root, function)
		}
	}
}

func appendTo(list *parse.ListNode, function string) {
	if list == nil {
		return
	}
	branches := func(b *parse.BranchNode) {
		appendTo(b.List, function)
		appendTo(b.ElseList, function)
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			if len(node.Pipe.Decl) == 0 {
				call := parse.NewIdentifier(function).SetPos(node.Pos)
				node.Pipe.Cmds = append(node.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: node.Pos, Args: []parse.Node{call}})
			}
		case *parse.IfNode:
			branches(&node.BranchNode)
		case *parse.WithNode:
			branches(&node.BranchNode)
		case *parse.RangeNode:
			branches(&node.BranchNode)
		}
	}
}

// Samples returns events of each operation, with and without their optional fields. A template must handle them all.
func Samples() []*event.Event {
	object := map[string]any{"metadata": map[string]any{"name": "web"}}
	web := event.Resource{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "1"}
	var out []*event.Event
	for _, d := range []event.Data{
		{Op: event.Snapshot, After: object, Resource: web},
		{Op: event.Created, After: object, Resource: event.Resource{Version: "v1", Resource: "nodes", Kind: "Node", Name: "n1", UID: "u", ResourceVersion: "1"}},
		{Op: event.Updated, Changes: []event.Change{{Path: "spec.replicas", Op: "replace", From: int64(1), To: int64(2), Manager: "kubectl"}}, Resource: web},
		{Op: event.Converted, Changes: []event.Change{{Path: "spec.paused", Op: "add", To: false, Manager: "?"}}, Resource: web, Form: 1, Quiet: true},
		{Op: event.Deleted, Before: object, Resource: web},
		{Op: event.Entered, After: object, Resource: web},
		{Op: event.Left, Before: object, Resource: web},
		{Op: event.Gap, Gap: &event.GapInfo{From: "1", To: "2", Reason: "sample"}, Resource: event.Resource{Version: "v1", Resource: "pods", Kind: "Pod"}},
		{Op: event.Absent, Absence: &event.Absence{Reason: event.AbsenceStopped, Changes: 1}, Resource: event.AbsenceResource},
	} {
		if d.Op == event.Deleted {
			d.Resource.Owner = &event.Owner{Kind: "Shop", Name: "main", UID: "o"}
		}
		e := event.New("sample", time.Unix(0, 0), d)
		out = append(out, &e)
	}
	return out
}
