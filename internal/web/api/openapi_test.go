package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/goldentest"
	"github.com/tattler-dev/tattler/internal/web/api"
)

// TestOpenAPI: the document is docs/openapi.json, has a request in requests for each path, and describes the answers to
// them.
func TestOpenAPI(t *testing.T) {
	text, err := api.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	goldentest.Compare(t, "../../../docs/openapi.json", string(text))
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	s := open(t)
	id, seq := updated(t, s)
	h := serve(t, s, access.Everything{}, nil)
	if _, served := body(t, h, "openapi.json"); served != string(text) {
		t.Error("another document is served")
	}
	tested := map[string]bool{api.Root + "openapi.json": true}
	for _, request := range requests(id, seq, storyOf(t, s)) {
		path, _, _ := strings.Cut(api.Root+request, "?")
		for p := range doc["paths"].(map[string]any) {
			if !regexp.MustCompile("^" + regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(regexp.QuoteMeta(p), `[^/]+`) + "$").MatchString(path) {
				continue
			}
			tested[p] = true
			code, answer := body(t, h, request)
			if code != http.StatusOK {
				t.Errorf("%s: %d %s", request, code, answer)
			}
			ok := at(doc, "paths", p, "get", "responses", "200", "content").(map[string]any)
			for _, media := range ok {
				for line := range strings.Lines(answer) {
					var v any
					if err := json.Unmarshal([]byte(line), &v); err != nil {
						t.Fatal(err)
					}
					for _, e := range mismatches(doc, media.(map[string]any)["schema"].(map[string]any), v, request) {
						t.Error(e)
					}
				}
			}
		}
	}
	for p := range doc["paths"].(map[string]any) {
		if !tested[p] {
			t.Errorf("no request tests %s", p)
		}
	}
	schema := at(doc, "components", "schemas", "Info").(map[string]any)
	if len(mismatches(doc, schema, map[string]any{"cluster": "c", "last": "x", "more": true}, "")) != 3 {
		t.Error("mismatches are not found: one of type, one missing, one unknown")
	}
}

func at(v any, path ...string) any {
	for _, p := range path {
		v = v.(map[string]any)[p]
	}
	return v
}

// mismatches returns how a value differs from its schema: the parts of JSON Schema that the document uses, and no
// properties that it does not list.
func mismatches(doc, schema map[string]any, v any, where string) (all []string) {
	if ref, ok := schema["$ref"].(string); ok {
		return mismatches(doc, at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any), v, where)
	}
	kind := map[bool]string{true: "null"}[v == nil]
	switch v := v.(type) {
	case string:
		kind = "string"
	case bool:
		kind = "boolean"
	case float64:
		kind = "number"
		if v == float64(int64(v)) && schema["type"] == "integer" {
			kind = "integer"
		}
	case []any:
		kind = "array"
		items, _ := schema["items"].(map[string]any)
		for i, e := range v {
			all = append(all, mismatches(doc, items, e, fmt.Sprint(where, "[", i, "]"))...)
		}
	case map[string]any:
		kind = "object"
		properties, listed := schema["properties"].(map[string]any)
		for name, e := range v {
			p, ok := properties[name].(map[string]any)
			if !ok && listed {
				all = append(all, where+"."+name+" is not described")
			} else if ok {
				all = append(all, mismatches(doc, p, e, where+"."+name)...)
			}
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				all = append(all, fmt.Sprint(where, ".", name, " is missing"))
			}
		}
	}
	if want, ok := schema["type"].(string); ok && want != kind {
		all = append(all, fmt.Sprint(where, " is ", kind, ", not ", want))
	}
	return all
}
