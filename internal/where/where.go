// Package where compiles the expressions that select changes: a sink's where, and --where of log.
//
// They are written in CEL, the Common Expression Language, like Kubernetes' admission policies. An expression sees
//
//	op        the operation: "snapshot", "created", "updated", "deleted", "entered", "left", "gap",
//	          "converted" or "absent"
//	severity  "failure", "warning", "recovery" or "change"
//	cluster   the name of the object's cluster
//	resource  the object's names: group, version, resource, kind, namespace, name, uid, resourceVersion, owner
//	changes   the changed fields of an update or a conversion: path, op, from, to, manager, subresource, quiet
//	before    the object before the change; an empty map if it did not exist
//	after     the object after the change; an empty map if it did not exist
//
// and touches("PATTERN"), with a pattern of docs/paths.md: true if a changed field that is not quiet is selected by the
// pattern, or lies above or below a selected one; for an object that appears or goes, true if the pattern selects anything
// in it.
//
// An expression can fail on a change, for example if the object lacks a key. Anyone who may write objects can cause that,
// so a caller that alerts must treat such a change as a match. Evaluation is bounded: loops run over lists and maps of the
// change only, and an expression that costs too much or takes too long fails.
package where

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/spell"
)

const (
	// maxLength bounds an expression in characters.
	maxLength = 8192
	// maxCost bounds an evaluation in CEL's units: about one per step, more for long strings. Most expressions take some
	// ten milliseconds to reach it. It is a fifth of what Kubernetes' API server allows (PerCallLimit in
	// k8s.io/apiserver/pkg/apis/cel).
	maxCost = 200_000
	// maxTime bounds an evaluation with a loop, because some steps take longer than their cost suggests, such as
	// comparing deep objects. Without a loop, the length of the expression bounds the steps.
	maxTime = 500 * time.Millisecond
	// interruptEvery is the number of loop rounds between checks of the time.
	interruptEvery = 16
)

// Expr is a compiled expression. It is immutable and safe for concurrent use.
type Expr struct {
	text     string
	program  cel.Program
	patterns []diff.Pattern // of the calls of touches, by number
	reads    map[string]bool
	loops    bool          // it has a loop
	limit    time.Duration // maxTime, except in tests
}

// Compile compiles an expression and checks its types. The error is an *Error that points into the expression.
func Compile(text string) (*Expr, error) {
	c := &compiler{text: text, Expr: &Expr{text: text, reads: map[string]bool{}, limit: maxTime}, calls: map[int64]int{}}
	if err := c.compile(); err != nil {
		return nil, err
	}
	return c.Expr, nil
}

// String returns the source text.
func (e *Expr) String() string { return e.text }

// Reads reports whether the expression uses a variable. An update's before and after are large: a caller of
// Match may omit those that the expression does not read.
func (e *Expr) Reads(variable string) bool { return e.reads[variable] }

// Match reports whether the expression is true for a change. The cluster of c is that of its kind, which must be set. Match
// does not retain c. After an error it is unknown whether the
// change matches.
func (e *Expr) Match(c *change.Change) (bool, error) {
	f := &facts{change: c, touched: make([]answer, len(e.patterns)), expr: e}
	if !e.loops {
		out, _, err := e.program.Eval(f)
		return verdict(out, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.limit)
	defer cancel()
	out, _, err := e.program.ContextEval(ctx, f)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it takes longer than %s: %w", e.limit, context.DeadlineExceeded)
	}
	return verdict(out, err)
}

func verdict(out ref.Val, err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("evaluate where: %w", err)
	}
	return out == types.True, nil
}

type compiler struct {
	*Expr
	text  string
	env   *cel.Env
	calls map[int64]int // expression id of a call of touches -> its pattern's number
}

func (c *compiler) compile() (err error) {
	if blank(c.text) {
		return c.fail(1, 1, "an empty expression; omit it to select every change")
	}
	if n := utf8.RuneCountInString(c.text); n > maxLength {
		return c.fail(1, 1, fmt.Sprintf("%d characters; an expression has at most %d", n, maxLength))
	}
	if c.env, err = newEnv(); err != nil {
		return fmt.Errorf("prepare where: %w", err)
	}
	parsed, issues := c.env.Parse(c.text)
	if issues.Err() != nil {
		return c.syntaxError(issues.Errors())
	}
	checked, issues := c.env.Check(parsed)
	if issues.Err() != nil {
		return c.typeError(issues.Errors(), parsed.NativeRep())
	}
	tree := checked.NativeRep()
	if err := c.look(tree); err != nil {
		return err
	}
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) {
		return c.noCondition(tree, got)
	}
	c.program, err = c.env.Program(checked, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery), cel.EvalOptions(cel.OptOptimize), cel.CustomDecorator(c.bind))
	if err != nil {
		return c.fail(1, 1, err.Error())
	}
	return nil
}

// look finds the variables and loops of a checked expression, and conditions that can never be true although their types
// match.
func (c *compiler) look(tree *ast.AST) (err error) {
	visit := func(e ast.Expr) {
		switch {
		case err != nil:
		case e.Kind() == ast.IdentKind:
			c.reads[e.AsIdent()] = true
		case e.Kind() == ast.ComprehensionKind:
			c.loops = true
		case e.Kind() == ast.StructKind:
			err = c.failAt(tree, e.ID(), "an expression cannot make "+e.AsStruct().TypeName())
		case e.Kind() != ast.CallKind:
		case e.AsCall().FunctionName() == touches:
			err = c.addPattern(tree, e)
		default:
			err = c.checkOps(tree, e.AsCall())
		}
	}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(visit))
	return err
}

// addPattern compiles the pattern of a call of touches. It must be a literal, so that an invalid pattern is found now and
// not during an evaluation.
func (c *compiler) addPattern(tree *ast.AST, call ast.Expr) error {
	arg := call.AsCall().Args()[0]
	text, ok := literal(arg)
	if !ok {
		return c.failAt(tree, arg.ID(), `touches needs a quoted string, such as touches("spec.replicas")`)
	}
	pattern, err := diff.ParsePattern(text)
	if err != nil {
		return c.patternError(tree, arg.ID(), text, err)
	}
	c.calls[call.ID()] = len(c.patterns)
	c.patterns = append(c.patterns, pattern)
	return nil
}

// checkOps rejects comparing an operation or a severity with a string that it never is.
func (c *compiler) checkOps(tree *ast.AST, call ast.CallExpr) error {
	var texts []ast.Expr
	switch name := call.FunctionName(); {
	case len(call.Args()) != 2:
		return nil
	case name == "_==_" || name == "_!=_":
		texts = call.Args()
	case name == "@in" && call.Args()[1].Kind() == ast.ListKind:
		texts = call.Args()[1].AsList().Elements()
	}
	for _, operand := range call.Args() {
		name, words, ok := wordsOf(tree, operand)
		if !ok {
			continue
		}
		for _, e := range texts {
			if text, ok := literal(e); ok && !slices.Contains(words, text) {
				return c.failAt(tree, e.ID(), never(name, text, words))
			}
		}
	}
	return nil
}

func never(name, text string, words []string) string {
	if near := spell.Nearest(text, words); near != "" {
		return fmt.Sprintf("%s is never %q; did you mean %q?", name, text, near)
	}
	return fmt.Sprintf("%s is never %q; it is one of %s", name, text, strings.Join(words, ", "))
}

// wordsOf returns the name and the possible values of an operand that is the severity or the op of the change, or the op of
// a field.
func wordsOf(tree *ast.AST, e ast.Expr) (name string, words []string, ok bool) {
	switch {
	case e.Kind() == ast.IdentKind && e.AsIdent() == "op":
		return "op", ops, true
	case e.Kind() == ast.IdentKind && e.AsIdent() == "severity":
		return "severity", severities, true
	case e.Kind() == ast.SelectKind && e.AsSelect().FieldName() == "op" &&
		tree.GetType(e.AsSelect().Operand().ID()).TypeName() == changeType:
		return "op", fieldOps, true
	}
	return "", nil, false
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// bind replaces calls of touches by their compiled patterns.
func (c *compiler) bind(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	if call, ok := i.(interpreter.InterpretableCall); ok && call.Function() == touches {
		return &touching{id: i.ID(), number: c.calls[i.ID()]}, nil
	}
	return i, nil
}
