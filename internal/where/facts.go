package where

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// facts is the activation of one evaluation.
type facts struct {
	data    *event.Data
	expr    *Expr
	list    ref.Val       // the variable changes, made on first use: a loop may read it in each round
	changes []diff.Change // for touches, made on first use
	made    bool
	touched []answer // results of the calls of touches, so that a call in a loop is computed once
}

type answer uint8

const (
	unasked answer = iota
	no
	yes
)

// self is a name that expressions cannot use.
const self = "@facts"

// ResolveName returns a variable.
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case "op":
		return string(f.data.Op), true
	case "severity":
		return string(f.data.Severity), true
	case "resource":
		return &f.data.Resource, true
	case "changes":
		if f.list == nil {
			f.list = changeList(f.data.Changes)
		}
		return f.list, true
	case "before":
		return object(f.data.Before), true
	case "after":
		return object(f.data.After), true
	case self:
		return f, true
	}
	return nil, false
}

// Parent returns nil: there is no outer scope.
func (f *facts) Parent() interpreter.Activation { return nil }

// object replaces an absent object by an empty one, for has() and size().
func object(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func changeList(changes []event.Change) ref.Val {
	list := make([]ref.Val, len(changes))
	for i := range changes {
		list[i] = adapter{}.NativeToValue(&changes[i])
	}
	return types.NewRefValList(adapter{}, list)
}

func (f *facts) touches(number int) bool {
	if f.touched[number] == unasked {
		f.touched[number] = no
		for _, c := range f.fields() {
			if f.expr.patterns[number].Touches(c) {
				f.touched[number] = yes
				break
			}
		}
	}
	return f.touched[number] == yes
}

// fields returns the changes that are not quiet: of the fields of an update or a conversion, or of the whole object.
func (f *facts) fields() []diff.Change {
	if f.made {
		return f.changes
	}
	f.made = true
	switch f.data.Op {
	case event.Updated, event.Converted:
	case event.Gap, event.Absent:
		return nil
	case event.Deleted, event.Left:
		f.changes = []diff.Change{{Op: diff.Remove, From: object(f.data.Before)}}
	default:
		f.changes = []diff.Change{{Op: diff.Add, To: object(f.data.After)}}
	}
	for _, c := range f.data.Changes {
		path, err := diff.ParsePath(c.Path)
		if err != nil || c.Quiet {
			continue // Builder writes valid paths; an invalid one from elsewhere touches nothing
		}
		f.changes = append(f.changes, diff.Change{Path: path, Op: diff.Op(c.Op), From: c.From, To: c.To})
	}
	return f.changes
}

// touching is a call of touches in a program.
type touching struct {
	id     int64
	number int
}

// ID returns the expression's id.
func (t *touching) ID() int64 { return t.id }

// Eval evaluates touches, in any scope.
func (t *touching) Eval(scope interpreter.Activation) ref.Val {
	f, ok := scope.ResolveName(self)
	if !ok {
		return types.NewErr("touches is evaluated without a change")
	}
	return types.Bool(f.(*facts).touches(t.number))
}
