package where

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"

	"github.com/tattler-dev/tattler/internal/spell"
)

// elsewhere maps names from Kubernetes' admission policies, events and objects to variables.
var elsewhere = map[string]string{
	"object": "after", "oldObject": "before", "old": "before", "new": "after", "self": "after",
	"kind": "resource.kind", "name": "resource.name", "namespace": "resource.namespace", "group": "resource.group",
	"version": "resource.version", "uid": "resource.uid", "owner": "resource.owner", "operation": "op",
	"metadata": "after.metadata", "spec": "after.spec", "status": "after.status", "data": "after.data",
}

// functions are the CEL functions useful in conditions on changes, and touches; loops take a name and a condition.
var (
	functions = []string{touches, "startsWith", "endsWith", "contains", "matches", "size", "has", "exists", "all", "filter"}
	loops     = []string{"exists", "all", "exists_one", "filter", "map"}
)

// unknownName suggests what an unknown name may have meant.
func unknownName(name string) string {
	known := slices.Concat(variables, functions)
	reason := fmt.Sprintf("there is no %s", name)
	switch instead, ok := elsewhere[name]; {
	case slices.Contains(loops, name):
		return fmt.Sprintf("%s needs a name and a condition, such as changes.%s(c, c.manager == \"helm\")", name, name)
	case ok:
		return fmt.Sprintf("%s; did you mean %s?", reason, instead)
	case slices.Contains(ops, name):
		return fmt.Sprintf("%s; strings need quotes: %q", reason, name)
	case spell.Nearest(name, known) != "":
		return reason + suggest(name, known)
	}
	return fmt.Sprintf(`%s; there are %s and touches("PATTERN"), and strings need quotes: %q`, reason, strings.Join(variables, ", "), name)
}

func unknownField(name string, tree *ast.AST, id int64) string {
	owner := resourceType
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() != id || e.Kind() != ast.SelectKind {
			return
		}
		switch operand := e.AsSelect().Operand(); {
		case operand.Kind() == ast.SelectKind && operand.AsSelect().FieldName() == "owner":
			owner = ownerType
		case operand.Kind() != ast.IdentKind || operand.AsIdent() != "resource":
			owner = changeType
		}
	}))
	names := fieldNames(owner)
	if spell.Nearest(name, names) != "" {
		return fmt.Sprintf("%s has no %s%s", typeName(owner), name, suggest(name, names))
	}
	return fmt.Sprintf("%s has no %s; it has %s", typeName(owner), name, strings.Join(names, ", "))
}

// misapplied explains that an operator or a function does not accept its operands. CEL writes operators as _==_, and the
// operands' types as (string, int), with a method's receiver before it.
func misapplied(function, given string) string {
	if function == touches {
		return `touches needs one quoted string, such as touches("spec.replicas")`
	}
	receiver, args, _ := strings.Cut(strings.TrimSuffix(given, ")"), "(")
	operands := splitTypes(args)
	for i := range operands {
		operands[i] = typeName(operands[i])
	}
	switch op := strings.Trim(function, "_@"); {
	case slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op) && len(operands) == 2:
		return fmt.Sprintf("%s cannot compare %s with %s", op, operands[0], operands[1])
	case op == "&&" || op == "||" || op == "!" || op == "!_":
		return fmt.Sprintf("%s needs conditions that are true or false, not %s", strings.TrimRight(op, "_"), strings.Join(operands, " and "))
	case op == "[_]" && operands[0] == "resource":
		return "resource is not a map: write resource.FIELD"
	case op == "in" && len(operands) == 2:
		return fmt.Sprintf("in cannot look for %s in %s", operands[0], operands[1])
	case receiver != "":
		return fmt.Sprintf("%s cannot be called on %s with %s", function, typeName(strings.TrimSuffix(receiver, ".")), orNothing(operands))
	default:
		return fmt.Sprintf("%s cannot take %s", op, orNothing(operands))
	}
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, " and ")
}

// splitTypes splits at commas outside type parameters.
func splitTypes(s string) []string {
	var out []string
	depth, begin := 0, 0
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[begin:i]))
				begin = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(s[begin:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// typeName describes a CEL type.
func typeName(t string) string {
	switch {
	case t == "string":
		return "a string"
	case t == "bool":
		return "a condition"
	case t == "int" || t == "uint" || t == "double":
		return "a number"
	case t == resourceType:
		return "resource"
	case t == changeType:
		return "a change"
	case t == ownerType:
		return "resource.owner"
	case strings.HasPrefix(t, "list"):
		return "a list"
	case strings.HasPrefix(t, "map"):
		return "an object"
	}
	return "a " + t
}

// suggest returns a suffix that suggests a known name similar to name, or "".
func suggest(name string, known []string) string {
	if near := spell.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}
