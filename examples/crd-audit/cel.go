package main

import (
	"context"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

// maxCost bounds a check, in CEL's units.
const maxCost = 1_000_000

// compileCEL compiles an expression that returns a text: the violation, or "" without one. It sees op, old and object.
func compileCEL(file, text string) (policy, error) {
	env, err := cel.NewEnv(cel.Variable("op", cel.StringType), cel.Variable("old", cel.DynType), cel.Variable("object", cel.DynType),
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), ext.Strings())
	if err != nil {
		return policy{}, err
	}
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		e := issues.Errors()[0]
		return policy{}, fmt.Errorf("%s:%d:%d: %s", file, e.Location.Line(), e.Location.Column()+1, e.Message)
	}
	if t := tree.OutputType(); !t.IsExactType(cel.StringType) && !t.IsExactType(cel.DynType) {
		return policy{}, fmt.Errorf(`%s:1: the expression gives %s; it must give a text: the violation, or "" without one`, file, t)
	}
	compiled, err := env.Program(tree, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return policy{}, fmt.Errorf("%s:1: %w", file, err)
	}
	return policy{check: func(ctx context.Context, e event) ([]string, error) {
		out, _, err := compiled.ContextEval(ctx, map[string]any{"op": e.op, "old": e.old, "object": e.object})
		if err != nil {
			return nil, err
		}
		found, ok := out.(types.String)
		switch {
		case !ok:
			return nil, fmt.Errorf("the expression gave %s, not a text", out.Type().TypeName())
		case found == "":
			return nil, nil
		}
		return []string{string(found)}, nil
	}}, nil
}
