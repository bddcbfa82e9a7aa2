package lint

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// form is an issue form. An unknown key is an error.
//
// Source: https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests, Syntax for
// issue forms, and Syntax for GitHub's form schema.
type form struct {
	Name, Description, Title string
	Labels, Assignees        []string
	Projects                 []string
	Type                     string
	Body                     []field
}

type field struct {
	Type       string
	ID         string
	Attributes struct {
		Label, Description, Placeholder, Value, Render string
		Options                                        []string
		Multiple                                       bool
		Default                                        *int
	}
	Validations struct{ Required bool }
}

// chooser is the page on which a user chooses a form.
type chooser struct {
	BlankIssues bool                                `yaml:"blank_issues_enabled"`
	Links       []struct{ Name, URL, About string } `yaml:"contact_links"`
}

var fieldID = regexp.MustCompile("^[A-Za-z0-9_-]+$")

// TestIssueForms: the forms have the keys that GitHub knows, and what it requires. It shows no form that is not valid.
func TestIssueForms(t *testing.T) {
	files, err := filepath.Glob("../../.github/ISSUE_TEMPLATE/*")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v: %v", files, err)
	}
	names := map[string]string{}
	for _, file := range files {
		base := filepath.Base(file)
		if filepath.Ext(base) != ".yml" {
			t.Errorf("%s: not a form", base)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		decoder.KnownFields(true)
		if base == "config.yml" {
			var c chooser
			if err := decoder.Decode(&c); err != nil {
				t.Errorf("%s: %v", base, err)
			}
			for _, l := range c.Links {
				if l.Name == "" || l.About == "" || !strings.HasPrefix(l.URL, "https://") {
					t.Errorf("%s: a link lacks its name, about or url: %+v", base, l)
				}
			}
			continue
		}
		var f form
		if err := decoder.Decode(&f); err != nil {
			t.Errorf("%s: %v", base, err)
			continue
		}
		for _, problem := range f.problems() {
			t.Errorf("%s: %s", base, problem)
		}
		if other := names[f.Name]; other != "" {
			t.Errorf("%s and %s have the name %q", base, other, f.Name)
		}
		names[f.Name] = base
	}
}

// problems returns what GitHub refuses.
func (f *form) problems() (all []string) {
	if f.Name == "" || f.Description == "" {
		all = append(all, "no name or no description")
	}
	asks := false
	ids, labels := map[string]bool{}, map[string]bool{}
	for _, b := range f.Body {
		a := &b.Attributes
		if b.Type == "markdown" {
			if a.Value == "" || b.ID != "" {
				all = append(all, "markdown needs a value, and has no id")
			}
			continue
		}
		asks = true
		switch {
		case !slices.Contains([]string{"input", "textarea", "dropdown"}, b.Type):
			all = append(all, "the type of a field is "+b.Type)
		case a.Label == "" || labels[a.Label]:
			all = append(all, "no label, or a second time: "+a.Label)
		case b.ID != "" && (!fieldID.MatchString(b.ID) || ids[b.ID]):
			all = append(all, "an invalid id, or a second time: "+b.ID)
		case (b.Type == "dropdown") != (len(a.Options) > 0):
			all = append(all, "a dropdown alone needs options: "+a.Label)
		case a.Render != "" && b.Type != "textarea":
			all = append(all, "a textarea alone renders: "+a.Label)
		case slices.ContainsFunc(a.Options, func(o string) bool { return o == "" || strings.EqualFold(o, "none") }):
			all = append(all, "an empty option, or None, which GitHub reserves: "+a.Label)
		}
		ids[b.ID], labels[a.Label] = true, true
	}
	if !asks {
		all = append(all, "it asks nothing")
	}
	return all
}

// TestIssueFormProblems: forms that GitHub refuses are found.
func TestIssueFormProblems(t *testing.T) {
	for _, tc := range []struct{ why, text string }{
		{"no description", "{name: a, body: [{type: input, attributes: {label: a}}]}"},
		{"no fields", "{name: a, description: a}"},
		{"only text", "{name: a, description: a, body: [{type: markdown, attributes: {value: a}}]}"},
		{"an unknown type", "{name: a, description: a, body: [{type: text, attributes: {label: a}}]}"},
		{"no label", "{name: a, description: a, body: [{type: input}]}"},
		{"no options", "{name: a, description: a, body: [{type: dropdown, attributes: {label: a}}]}"},
		{"a reserved option", "{name: a, description: a, body: [{type: dropdown, attributes: {label: a, options: [b, None]}}]}"},
		{"an id twice", "{name: a, description: a, body: [{type: input, id: a, attributes: {label: a}}, {type: input, id: a, attributes: {label: b}}]}"},
		{"an unknown key", "{name: a, description: a, body: [{type: input, attributes: {label: a, hint: b}}]}"},
	} {
		var f form
		decoder := yaml.NewDecoder(strings.NewReader(tc.text))
		decoder.KnownFields(true)
		if err := decoder.Decode(&f); err == nil && len(f.problems()) == 0 {
			t.Errorf("%s: no problem", tc.why)
		}
	}
}
