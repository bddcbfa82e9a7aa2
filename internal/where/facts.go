package where

import (
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// facts is the activation of one evaluation.
type facts struct {
	change   *change.Change
	expr     *Expr
	resource *event.Resource // the variable resource, made on first use
	list     ref.Val         // the variable changes, made on first use: a loop may read it in each round
	touched  []answer        // results of the calls of touches, so that a call in a loop is computed once
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
		return string(f.change.Op), true
	case "severity":
		return string(f.change.Severity()), true
	case "cluster":
		return f.change.Kind.Cluster, true
	case "resource":
		if f.resource == nil {
			r := f.change.Resource()
			f.resource = &r
		}
		return f.resource, true
	case "changes":
		if f.list == nil {
			f.list = changeList(f.change.Fields)
		}
		return f.list, true
	case "before":
		return object(f.change.Before), true
	case "after":
		return object(f.change.After), true
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

// changeList makes the text of the paths, which expressions compare.
func changeList(fields []change.FieldChange) ref.Val {
	list := make([]ref.Val, len(fields))
	for i := range fields {
		c := fields[i].Event()
		list[i] = adapter{}.NativeToValue(&c)
	}
	return types.NewRefValList(adapter{}, list)
}

func (f *facts) touches(number int) bool {
	if f.touched[number] == unasked {
		f.touched[number] = no
		if f.touchedBy(f.expr.patterns[number]) {
			f.touched[number] = yes
		}
	}
	return f.touched[number] == yes
}

// touchedBy compares a pattern with the fields of an update or a conversion that are not quiet, or with the whole object.
func (f *facts) touchedBy(p diff.Pattern) bool {
	switch c := f.change; c.Op {
	case event.Updated, event.Converted:
		return slices.ContainsFunc(c.Fields, func(d change.FieldChange) bool { return !d.Quiet && p.Touches(d.Change) })
	case event.Gap, event.Absent:
		return false
	case event.Deleted, event.Left:
		return p.Touches(diff.Change{Op: diff.Remove, From: object(c.Before)})
	default:
		return p.Touches(diff.Change{Op: diff.Add, To: object(c.After)})
	}
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
