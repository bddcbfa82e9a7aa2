package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// compileRego compiles a module whose set violations has the texts. Its input has op, old and object.
func compileRego(file, text string) (policy, error) {
	module, err := ast.ParseModuleWithOpts(file, text, ast.ParserOptions{ProcessAnnotation: false})
	if err != nil {
		return policy{}, first(err)
	}
	may := ast.CapabilitiesForThisVersion()
	may.AllowNet = []string{} // a policy reads what it is given, and nothing else
	compiler := ast.NewCompiler().WithCapabilities(may).WithStrict(true)
	if compiler.Compile(map[string]*ast.Module{file: module}); compiler.Failed() {
		return policy{}, first(compiler.Errors)
	}
	result := module.Package.Path.String() + ".violations"
	if compiler.GetRulesExact(ast.MustParseRef(result)) == nil {
		return policy{}, fmt.Errorf("%s:1: it has no rule violations, such as: violations contains text if …", file)
	}
	// What OPA's functions cannot do, such as to_number("x"), is an error, and not silently no violation.
	query, err := rego.New(rego.Query(result), rego.Compiler(compiler), rego.StrictBuiltinErrors(true)).PrepareForEval(context.Background())
	if err != nil {
		return policy{}, fmt.Errorf("%s:1: %w", file, first(err))
	}
	return policy{check: func(ctx context.Context, e event) ([]string, error) {
		answers, err := query.Eval(ctx, rego.EvalInput(map[string]any{"op": e.op, "old": e.old, "object": e.object}))
		if err != nil || len(answers) == 0 {
			return nil, err
		}
		set, ok := answers[0].Expressions[0].Value.([]any)
		if !ok {
			return nil, fmt.Errorf("violations is a %T, not a set of texts", answers[0].Expressions[0].Value)
		}
		var texts []string
		for _, v := range set {
			texts = append(texts, fmt.Sprint(v))
		}
		return texts, nil
	}}, nil
}

// first is the first of OPA's errors, which says where it is.
func first(err error) error {
	var all ast.Errors
	if !errors.As(err, &all) || len(all) == 0 {
		return err
	}
	e := all[0]
	if e.Location == nil {
		return errors.New(e.Message)
	}
	return fmt.Errorf("%s:%d:%d: %s", e.Location.File, e.Location.Row, e.Location.Col, e.Message)
}
