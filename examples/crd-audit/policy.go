package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/examples/internal/program"
)

// event is a policy's input: the operation (added, updated or deleted), and the object before and after it, empty if
// it does not exist. Objects that exist at the start are added.
type event struct {
	op          string
	old, object map[string]any
}

func content(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return map[string]any{}
	}
	return u.Object
}

// policy returns what is wrong with a change, as texts; none if it is fine.
type policy struct {
	name  string // of its file
	check func(ctx context.Context, e event) ([]string, error)
	// failed has the kinds on whose objects it failed; each is logged once.
	failed *sync.Map
}

// checkLimit bounds one check, for policies with nested loops. What is cut off finds nothing, so a busy machine must not
// reach it.
const checkLimit = 20 * time.Second

// load compiles the policies of a folder.
func load(dir string) ([]policy, error) {
	if dir == "" {
		return nil, program.Usage("give a folder with policies, such as --policies crd-audit/policies")
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, program.Usage("--policies: %v", err)
	}
	var all []policy
	for _, f := range files {
		file := filepath.Join(dir, f.Name())
		compile := map[string]func(file, text string) (policy, error){".rego": compileRego, ".cel": compileCEL}[filepath.Ext(file)]
		if compile == nil || f.IsDir() {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, program.Usage("--policies: %v", err)
		}
		p, err := compile(file, string(text))
		if err != nil {
			return nil, program.Usage("%s", oneLine(err.Error()))
		}
		p.name, p.failed = f.Name(), &sync.Map{}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, program.Usage("--policies: %s has no file that ends with .rego or .cel", dir)
	}
	return all, nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// finding is a violation of a policy, and the change that revealed it.
type finding struct {
	policy, text string
	op           string
	old          map[string]any
	// stamp, if set, is the object's stamp when an earlier run of the program found the violation; the change is unknown.
	stamp string
}

func (f finding) same(g finding) bool { return f.policy == g.policy && f.text == g.text }

// judge returns the violations of an object after a change: the new ones, and those from before that still hold. One from
// before holds while the change that revealed it would still be forbidden if it had led to the present object: an image
// that went back to latest stays a violation when something else in the object changes.
func judge(ctx context.Context, policies []policy, kind string, e event, before []finding) []finding {
	var all []finding
	add := func(f finding) {
		for _, g := range all {
			if f.same(g) {
				return
			}
		}
		all = append(all, f)
	}
	for _, p := range policies {
		for _, f := range before {
			switch {
			case f.policy != p.name || e.op == "deleted":
			case f.stamp != "" && f.stamp == stamp(e.object):
				add(f)
			case f.stamp == "":
				for _, text := range p.texts(ctx, kind, event{f.op, f.old, e.object}) {
					add(finding{policy: p.name, text: text, op: f.op, old: f.old})
				}
			}
		}
		for _, text := range p.texts(ctx, kind, e) {
			add(finding{policy: p.name, text: text, op: e.op, old: e.old})
		}
	}
	return all
}

// texts checks a change. A policy that fails is logged; that is not a violation.
func (p policy) texts(ctx context.Context, kind string, e event) []string {
	limited, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	texts, err := p.check(limited, e)
	if err != nil && ctx.Err() == nil {
		if _, again := p.failed.LoadOrStore(kind, true); !again {
			slog.Error("a policy failed; further failures on this kind are not logged", "policy", p.name, "kind", kind, "error", oneLine(err.Error()))
		}
	}
	for i := range texts {
		texts[i] = oneLine(texts[i])
	}
	return texts
}

// stamp identifies the desired state of an object: by its generation or, if it has none, its resource version.
func stamp(object map[string]any) string {
	u := unstructured.Unstructured{Object: object}
	if g := u.GetGeneration(); g != 0 {
		return fmt.Sprintf("%s generation %d", u.GetUID(), g)
	}
	return fmt.Sprintf("%s version %s", u.GetUID(), u.GetResourceVersion())
}
