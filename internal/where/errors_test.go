package where

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestErrors lists mistakes of people who know other languages.
func TestErrors(t *testing.T) {
	for _, tc := range []struct{ why, expr, at, want string }{
		{"blank", " \n", "1:1", "an empty expression; omit it to select every change"},
		{"a single =", `op = "deleted"`, "1:4", "a single =: compare with =="},
		{"three", `op === "deleted"`, "1:6", "a single =: compare with =="},
		{"a single &", `op == "deleted" & touches("a")`, "1:17", "a single &: write &&"},
		{"typographic quotes", `op == “deleted”`, "1:7", `strings need straight quotes: "…"`},
		{"an open quote", `op == 'deleted`, "1:7", "this string has no closing quote"},
		{"Python's or", `op == "deleted" or op == "created"`, "1:17", "or is not an operator of CEL: write ||"},
		{"SQL's AND", `op == 'deleted' AND true`, "1:17", "AND is not an operator of CEL: write &&"},
		{"Python's not", `not touches("spec")`, "1:1", "not is not an operator of CEL: write !"},
		{"an operand is missing", `op == "deleted" &&`, "1:19", "the expression ends too early"},
		{"a parenthesis is missing", `(op == "deleted"`, "1:17", "the expression ends too early"},
		{"one too many", `op == "deleted")`, "1:16", ") is not expected here"},
		{"a shell's variable", `$op == 1`, "1:1", `"$" is not part of CEL`},
		{"a reserved word", `if op == "deleted" then true`, "1:1", "if is a reserved word of CEL"},
		{"a second line", "op == \"deleted\" ||\n\tresource.kin == \"Pod\"", "2:11", "resource has no kin; did you mean kind?"},
		{"columns are characters", `"ä€" == resource.nam`, "1:18", "resource has no nam; did you mean name?"},

		{"no such operation", `op == "delete"`, "1:7", `op is never "delete"; did you mean "deleted"?`},
		{"in a list", `op in ["deleted", "create"]`, "1:19", `op is never "create"; did you mean "created"?`},
		{"on the other side", `"x" != op`, "1:1", `op is never "x"; it is one of snapshot, created, updated, deleted, entered, left, gap, converted`},
		{"no such severity", `severity == "failures"`, "1:13", `severity is never "failures"; did you mean "failure"?`},
		{"a field has other ops", `changes.exists(c, c.op == "updated")`, "1:27", `op is never "updated"; it is one of add, remove, replace`},
		{"no quotes", `op == deleted`, "1:7", `there is no deleted; strings need quotes: "deleted"`},
		{"no quotes, elsewhere", `resource.namespace == shop`, "1:23", `there is no shop; there are op, severity, cluster, resource, changes, before, after and touches("PATTERN"), and strings need quotes: "shop"`},
		{"a typing mistake", `reource.kind == "Pod"`, "1:1", "there is no reource; did you mean resource?"},
		{"an admission policy's name", `object.spec.replicas > 3`, "1:1", "there is no object; did you mean after?"},
		{"a field of the object", `metadata.name == "x"`, "1:1", "there is no metadata; did you mean after.metadata?"},
		{"a field of resource alone", `kind == "Pod"`, "1:1", "there is no kind; did you mean resource.kind?"},
		{"a field that is not there", `resource.labels == {}`, "1:10", "resource has no labels; it has group, version, resource, kind, namespace, name, uid, resourceVersion, owner"},
		{"of the owner", `resource.owner.knd == ""`, "1:16", "resource.owner has no knd; did you mean kind?"},
		{"of a change", `changes.exists(c, c.pth == "x")`, "1:21", "a change has no pth; did you mean path?"},
		{"a list is not a change", `changes.path == "x"`, "1:9", "changes is a list: write changes.exists(c, c.path == …)"},
		{"a string is not an object", `op.name == "x"`, "1:4", "a string has no fields"},
		{"a loop without a name", `changes.all(c)`, "1:9", `all needs a name and a condition, such as changes.all(c, c.manager == "helm")`},

		{"resource is not its name", `resource == "pods"`, "1:10", "== cannot compare resource with a string"},
		{"resource is not a map", `resource["kind"] == "Pod"`, "1:9", "resource is not a map: write resource.FIELD"},
		{"a text and a number", `op > 3`, "1:4", "> cannot compare a string with a number"},
		{"in, of a text", `op in "deleted"`, "1:4", "in cannot look for a string in a string"},
		{"a method of another type", `resource.name.contains(3)`, "1:15", "contains cannot be called on a string with a number"},
		{"letters of the wrong case", `resource.name.startswith("x")`, "1:15", "there is no startswith; did you mean startsWith?"},
		{"a string is not a condition", `op && true`, "1:1", "this is a string, want a condition"},
		{"negating a string", `!op`, "1:1", "! needs conditions that are true or false, not a string"},
		{"a string alone", `op`, "1:1", "this gives a string, want a condition that is true or false"},
		{"a number", `size(changes)`, "1:1", "this gives a number, want a condition that is true or false"},
		{"a dynamic type", `after.spec.paused`, "1:12", "the type of this is known only at evaluation: compare it, as in … == true"},
		{"a struct", `event.Owner{kind: "x"} == resource.owner`, "1:12", "an expression cannot make event.Owner"},

		{"touches without quotes", `touches(spec.replicas)`, "1:9", "there is no spec; did you mean after.spec?"},
		{"touches of a number", `touches(3)`, "1:1", `touches needs one quoted string, such as touches("spec.replicas")`},
		{"touches with two arguments", `touches("a", "b")`, "1:1", `touches needs one quoted string`},
		{"touches of a variable", `touches(op)`, "1:9", `touches needs a quoted string`},
		{"a misspelt touches", `touched("spec")`, "1:1", "there is no touched; did you mean touches?"},
		{"an empty path", `touches("")`, "1:10", `invalid path "": empty path`},
		{"an invalid path", `op == "updated" && touches("spec..x")`, "1:34", `invalid path "spec..x": empty name`},
		{"an invalid path in escapes", `touches("spec\u002e.x")`, "1:9", `invalid path "spec..x": column 6: empty name`},

		{"an invalid regular expression", `resource.name.matches("[")`, "1:23", "invalid matches argument"},
		{"a string that its line does not end", "'\n0", "1:1", "this string has no closing quote"},
		{"a string that its line does not end, in a condition", "true &&\n op == \"a\n|| true", "2:8", "this string has no closing quote"},
		{"a raw string that its line does not end", "r'a\n'", "1:2", "this string has no closing quote"},
		{"a control character", "op \x00 1", "1:4", `"\x00" is not part of CEL`},
		{"too long", `op == "` + strings.Repeat("x", maxLength) + `"`, "1:1", "8200 characters; an expression has at most 8192"},
	} {
		_, err := Compile(tc.expr)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %s: error %v, want an *Error", tc.why, tc.expr, err)
			continue
		}
		if at := fmt.Sprintf("%d:%d", e.Line, e.Column); at != tc.at || !strings.HasPrefix(e.Reason, tc.want) {
			t.Errorf("%s: %s\n got %s %s\nwant %s %s", tc.why, tc.expr, at, e.Reason, tc.at, tc.want)
		}
	}
}

func TestErrorPoints(t *testing.T) {
	for _, tc := range []struct{ why, expr, want string }{
		{"at the mistake", `op = "x"`, "invalid expression: 1:4: a single =: compare with ==\n    op = \"x\"\n       ^"},
		{"in its line, below a tab", "true &&\r\n\ttouches(3)\r\n", "invalid expression: 2:2: touches needs one quoted string, such as touches(\"spec.replicas\")\n    \ttouches(3)\n    \t^"},
		{"past the end", "op ==", "invalid expression: 1:6: the expression ends too early\n    op ==\n         ^"},
		{"an empty expression", "", "invalid expression: 1:1: an empty expression; omit it to select every change\n    \n    ^"},
		{"control characters are replaced", "op == \"\x1b[31m\" & true", "invalid expression: 1:15: a single &: write &&\n    op == \"\ufffd[31m\" & true\n                  ^"},
	} {
		_, err := Compile(tc.expr)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s:\n got %q\nwant %q", tc.why, err, tc.want)
		}
	}
}

// FuzzCompile: whatever the text, an error points into it, and what compiles evaluates.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{`op == "deleted" || touches("spec.**")`, `touches("a[name=x]")`, "a\n\tb", `changes.exists(c, c.op == "add")`, `op = 3`, `not x`, `"`, `resource.`, `.`, `{{`, `ä(`, "'\n0", "op == \"a\n", "op\r\n==", `resource.owner.kind`} {
		f.Add(s)
	}
	d := update()
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Compile(text)
		var wrong *Error
		switch {
		case err == nil:
			_, _ = e.Match(d)
		case !errors.As(err, &wrong):
			t.Fatalf("%q: %v", text, err)
		default:
			lines := strings.Split(text, "\n")
			if wrong.Line < 1 || wrong.Line > len(lines) || wrong.Column < 1 || wrong.Column > len([]rune(lines[wrong.Line-1]))+1 {
				t.Fatalf("%q: the error points to %d:%d", text, wrong.Line, wrong.Column)
			}
			_ = wrong.Error()
		}
	})
}
