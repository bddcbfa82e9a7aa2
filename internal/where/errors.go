package where

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"

	"github.com/tattler-dev/tattler/diff"
)

// Error is a mistake in an expression, with its position.
type Error struct {
	Expr string
	// Line and Column, in characters, count from 1. If the expression ends too early, Column is one past its last
	// character.
	Line, Column int
	Reason       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("invalid expression: %d:%d: %s\n%s", e.Line, e.Column, e.Reason, e.Excerpt())
}

// Excerpt returns the line with the mistake and, below it, a caret.
func (e *Error) Excerpt() string {
	lines := strings.Split(e.Expr, "\n")
	line := strings.TrimSuffix(lines[min(e.Line, len(lines))-1], "\r")
	var b strings.Builder
	fmt.Fprintf(&b, "    %s\n    ", strings.Map(visible, line))
	for i, r := range []rune(line) {
		switch {
		case i >= e.Column-1:
		case r == '\t':
			b.WriteByte('\t') // as wide as above
		default:
			b.WriteByte(' ')
		}
	}
	b.WriteString(strings.Repeat(" ", max(0, e.Column-1-len([]rune(line)))))
	return b.String() + "^"
}

// visible replaces characters that a terminal would act on.
func visible(r rune) rune {
	if r != '\t' && !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func (c *compiler) fail(line, column int, reason string) error {
	return &Error{Expr: c.text, Line: max(line, 1), Column: max(column, 1), Reason: reason}
}

func (c *compiler) failAt(tree *ast.AST, id int64, reason string) error {
	at := tree.SourceInfo().GetStartLocation(id)
	return c.fail(at.Line(), c.begin(at.Line(), at.Column()+1), reason)
}

// patternError points into the pattern if the expression contains it without escapes.
func (c *compiler) patternError(tree *ast.AST, id int64, text string, err error) error {
	at := tree.SourceInfo().GetStartLocation(id)
	line, column, reason := at.Line(), at.Column()+1, err.Error()
	var where *diff.PathError
	if errors.As(err, &where) {
		source := c.line(line)
		if begin := min(column, len(source)); strings.HasPrefix(string(source[begin:]), text) {
			column, reason = column+where.Column, fmt.Sprintf("invalid path %q: %s", text, where.Reason)
		}
	}
	return c.fail(line, column, reason)
}

// noCondition rejects an expression that is not known to be a boolean.
func (c *compiler) noCondition(tree *ast.AST, got *cel.Type) error {
	reason := fmt.Sprintf("this gives %s, want a condition that is true or false", typeName(got.String()))
	if got.Kind() == cel.DynType.Kind() {
		reason = "the type of this is known only at evaluation: compare it, as in … == true"
	}
	return c.failAt(tree, tree.Expr().ID(), reason)
}

// The messages of the parser. They have texts of the expression, which may have several lines.
var (
	undeclared = regexp.MustCompile(`(?s)^undeclared reference to '([^']*)'`)
	noField    = regexp.MustCompile(`(?s)^undefined field '([^']*)'`)
	noSelect   = regexp.MustCompile(`(?s)^type '(.*)' does not support field selection`)
	wrongType  = regexp.MustCompile(`(?s)^expected type '(.*)' but found '(.*)'`)
	noOverload = regexp.MustCompile(`(?s)^found no matching overload for '([^']*)' applied to '(.*)'`)

	strayChar  = regexp.MustCompile(`(?s)^Syntax error: token recognition error at: '(.*)'`)
	endOfInput = regexp.MustCompile(`(?s)^Syntax error: .*'<EOF>'( expecting|$)`)
	strayWord  = regexp.MustCompile(`(?s)^Syntax error: (?:mismatched|extraneous) input '(.*)' expecting`)
	noViable   = regexp.MustCompile(`(?s)^Syntax error: no viable alternative at input '(.*)'`)
)

// syntaxError reports the parser's first error; later ones follow from it.
func (c *compiler) syntaxError(found []*common.Error) error {
	first := slices.MinFunc(found, func(a, b *common.Error) int { return position(a) - position(b) })
	line, column := first.Location.Line(), first.Location.Column()+1
	if word, begin := c.wordBefore(line, column); operators[strings.ToLower(word)] != "" && !endOfInput.MatchString(first.Message) {
		return c.fail(line, begin, notAnOperator(word)) // not x: the parser complains about x
	}
	return c.fail(line, column, c.syntaxReason(first.Message))
}

func notAnOperator(word string) string {
	return fmt.Sprintf("%s is not an operator of CEL: write %s", word, operators[strings.ToLower(word)])
}

func (c *compiler) line(n int) []rune {
	lines := strings.Split(c.text, "\n")
	return []rune(lines[min(max(n, 1), len(lines))-1])
}

// wordBefore returns the word that ends before a column, and the column where it begins.
func (c *compiler) wordBefore(line, column int) (string, int) {
	text := c.line(line)
	end := max(0, min(column-1, len(text)))
	for end > 0 && text[end-1] == ' ' {
		end--
	}
	begin := end
	for begin > 0 && inWord(text[begin-1]) {
		begin--
	}
	return string(text[begin:end]), begin + 1
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func position(e *common.Error) int { return e.Location.Line()<<16 + e.Location.Column() }

func (c *compiler) syntaxReason(message string) string {
	if m := strayChar.FindStringSubmatch(message); m != nil {
		return strayReason(m[1])
	}
	if endOfInput.MatchString(message) {
		return "the expression ends too early"
	}
	for _, form := range []*regexp.Regexp{strayWord, noViable} {
		if m := form.FindStringSubmatch(message); m != nil {
			if operators[strings.ToLower(m[1])] != "" {
				return notAnOperator(m[1])
			}
			return fmt.Sprintf("%s is not expected here", m[1])
		}
	}
	if word, ok := strings.CutPrefix(message, "reserved identifier: "); ok {
		return fmt.Sprintf("%s is a reserved word of CEL", word)
	}
	return strings.TrimPrefix(message, "Syntax error: ")
}

// strayReason explains characters that begin nothing.
func strayReason(text string) string {
	switch {
	case strings.HasPrefix(text, "="):
		return "a single =: compare with =="
	case strings.HasPrefix(text, "&"):
		return "a single &: write &&"
	case strings.HasPrefix(text, "|"):
		return "a single |: write ||"
	case strings.HasPrefix(text, `"`), strings.HasPrefix(text, "'"):
		return "this string has no closing quote"
	case strings.ContainsAny(text, "“”„‘’"):
		return "strings need straight quotes: \"…\""
	}
	return fmt.Sprintf("%q is not part of CEL", text)
}

// operators maps operators of other languages to CEL's.
var operators = map[string]string{
	"and": "&&", "or": "||", "not": "!", "is": "==", "eq": "==", "contains": "STRING.contains(…)",
	"matches": "STRING.matches(…)", "like": "STRING.matches(…)", "startswith": "STRING.startsWith(…)",
}

// typeError reports the first type error.
func (c *compiler) typeError(found []*common.Error, tree *ast.AST) error {
	first := slices.MinFunc(found, func(a, b *common.Error) int { return position(a) - position(b) })
	line, column := first.Location.Line(), first.Location.Column()+1
	return c.fail(line, c.begin(line, column), c.typeReason(first, tree))
}

// begin moves from a call's parenthesis, or the dot before a field, to the name.
func (c *compiler) begin(line, column int) int {
	text := c.line(line)
	switch {
	case column < 1 || column > len(text):
	case text[column-1] == '.':
		return column + 1
	case text[column-1] == '(' && column > 1 && inWord(text[column-2]):
		_, begin := c.wordBefore(line, column)
		return begin
	}
	return column
}

func (c *compiler) typeReason(e *common.Error, tree *ast.AST) string {
	if m := undeclared.FindStringSubmatch(e.Message); m != nil {
		return unknownName(m[1])
	}
	if m := noField.FindStringSubmatch(e.Message); m != nil {
		return unknownField(m[1], tree, e.ExprID)
	}
	if m := noSelect.FindStringSubmatch(e.Message); m != nil {
		if m[1] == "list("+changeType+")" {
			return "changes is a list: write changes.exists(c, c.path == …)"
		}
		return typeName(m[1]) + " has no fields"
	}
	if m := noOverload.FindStringSubmatch(e.Message); m != nil {
		return misapplied(m[1], m[2])
	}
	if m := wrongType.FindStringSubmatch(e.Message); m != nil {
		return fmt.Sprintf("this is %s, want %s", typeName(m[2]), typeName(m[1]))
	}
	return e.Message
}
