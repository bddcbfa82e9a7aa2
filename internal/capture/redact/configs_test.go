package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// configLimits are the reasons why a value marked ~name in testdata/configs leaks, or is hidden although it is
// ordinary. The test fails when such a value no longer does, so that the mark goes.
var configLimits = map[string]string{
	"credentials-file": "a key of a ConfigMap names a file of credentials, so the value is hidden whole",
	"bare-key":         "a field named just key, in a section whose name says nothing about credentials",
	"bare-list":        "an item of a list whose name says nothing about credentials, in a form that checksums have, too",
	"pin":              "a PIN, which is also the name of a pin: rules of users cover it",
	"positional":       "an argument without a name, of a call or of a directive",
	"no-scheme":        "a login in something like a URL, without a scheme",
	"user-name":        "a user's name is the field's, and only the program's documentation says that the value is a password",
}

// configCarrier makes an object that holds a file.
type configCarrier struct {
	name, resource string
	object         func(key, text string) map[string]any
	base64         bool
}

var configCarriers = []configCarrier{
	{"configmap", "configmaps", func(key, text string) map[string]any {
		return map[string]any{"kind": "ConfigMap", "metadata": configMeta(nil), "data": map[string]any{"a": "b", key: text}}
	}, false},
	{"annotation", "services", func(_, text string) map[string]any {
		return map[string]any{"kind": "Service", "metadata": configMeta(map[string]any{"example.com/config": text})}
	}, false},
	{"resource", "widgets.example.com", func(key, text string) map[string]any {
		return map[string]any{"kind": "Widget", "metadata": configMeta(nil), "spec": map[string]any{"template": map[string]any{"files": []any{map[string]any{"path": "/etc/app/" + key, "content": text}}}}}
	}, false},
	{"configmap-base64", "configmaps", func(key, text string) map[string]any {
		return map[string]any{"kind": "ConfigMap", "metadata": configMeta(nil), "binaryData": map[string]any{key: base64.StdEncoding.EncodeToString([]byte(text))}}
	}, true},
	{"resource-base64", "widgets.example.com", func(key, text string) map[string]any {
		return map[string]any{"kind": "Widget", "metadata": configMeta(nil), "spec": map[string]any{"files": []any{map[string]any{"path": "/etc/app/" + key, "content": base64.StdEncoding.EncodeToString([]byte(text))}}}}
	}, true},
}

// hidesWhole reports whether redaction hides the whole text in a carrier: base64, and annotations that are manifests.
func (c configCarrier) hidesWhole(text string) bool {
	return c.base64 || c.name == "annotation" && manifestText.MatchString(text)
}

var manifestText = regexp.MustCompile(`(?m)^apiVersion: `)

func configMeta(annotations map[string]any) map[string]any {
	return map[string]any{"name": "app", "uid": "f0b1c2d3", "annotations": annotations}
}

// TestConfigs looks for the credentials of the configuration files of many programs, in the objects that hold
// such files, with both line ends and in the quotes that the format allows. Values marked as ordinary must stay
// visible where the text is not hidden whole.
func TestConfigs(t *testing.T) {
	r := redactor(t)
	programs, limits := map[string]bool{}, map[string]bool{}
	for _, f := range readConfigs(t) {
		programs[f.program] = true
		for _, m := range f.marks {
			limits[m.limit] = true
		}
		t.Run(f.program+"/"+f.key, func(t *testing.T) {
			variants := f.variants()
			f.validate(t, variants[0].text)
			for _, c := range configCarriers {
				for _, v := range variants {
					t.Run(c.name+"/"+v.name, func(t *testing.T) { f.redact(t, r, c, v) })
				}
			}
			f.summarize(t, len(variants))
		})
	}
	if len(programs) < 60 {
		t.Errorf("%d programs, want 60", len(programs))
	}
	for name := range configLimits {
		if !limits[name] {
			t.Errorf("limit %q has no mark", name)
		}
	}
}

// redact searches an object that holds the file.
func (f *configFile) redact(t *testing.T, r *Redactor, c configCarrier, v configVariant) {
	object := c.object(f.key, v.text)
	text, err := r.Redact(c.resource, []byte(encode(t, object)))
	if err != nil {
		t.Fatal(err)
	}
	if lines := f.check(allTexts(decode(t, string(text))), c.name, v.name, c.hidesWhole(v.text)); len(lines) > 0 {
		t.Errorf("wrong in lines %v, see the summary", lines)
	}
}

// check searches the redacted text, and returns the lines of the marks that are wrong.
func (f *configFile) check(after, carrier, variant string, whole bool) (lines []int) {
	for i := range f.marks {
		m := &f.marks[i]
		wrong := false
		switch {
		case m.secret:
			c := &canaries{all: strings.Split(m.value, "\n")}
			wrong = len(c.leaked(after)) > 0
		case !whole:
			wrong = !strings.Contains(after, m.value)
		}
		if !wrong {
			continue
		}
		if m.found == nil {
			m.found = map[string][]string{}
		}
		m.found[variant] = append(m.found[variant], carrier)
		if m.limit == "" {
			lines = append(lines, m.line)
		}
	}
	return slices.Compact(lines)
}

// summarize lists what is wrong in a file.
func (f *configFile) summarize(t *testing.T, variants int) {
	t.Helper()
	var out strings.Builder
	for _, m := range f.marks {
		what := map[bool]string{true: "leaked", false: "hidden for nothing"}[m.secret]
		switch {
		case m.limit != "" && len(m.found) == 0:
			fmt.Fprintf(&out, "  line %d: %s\n    is right: remove the mark ~%s\n", m.line, m.source, m.limit)
		case m.limit == "" && len(m.found) > 0:
			fmt.Fprintf(&out, "  line %d: %s\n    %s in %s\n", m.line, m.source, what, m.where(variants))
		}
	}
	if out.Len() > 0 {
		t.Errorf("%s/%s:\n%s", f.program, f.key, &out)
	}
}

// where lists variants with the same carriers together.
func (m configMark) where(variants int) string {
	byCarriers := map[string][]string{}
	for _, variant := range slices.Sorted(maps.Keys(m.found)) {
		carriers := strings.Join(m.found[variant], " ")
		byCarriers[carriers] = append(byCarriers[carriers], variant)
	}
	var out []string
	for _, carriers := range slices.Sorted(maps.Keys(byCarriers)) {
		in := strings.Join(byCarriers[carriers], " ")
		if len(byCarriers[carriers]) == variants {
			in = "all variants"
		}
		out = append(out, in+" of "+carriers)
	}
	return strings.Join(out, "; ")
}

// allTexts returns all texts of a value, and what they are the base64 of, one per line.
func allTexts(value any) string {
	switch v := value.(type) {
	case string:
		if b, err := base64.StdEncoding.DecodeString(v); err == nil {
			v += "\n" + string(b)
		}
		return v
	case map[string]any:
		var out strings.Builder
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out.WriteString(allTexts(v[key]) + "\n")
		}
		return out.String()
	case []any:
		var out strings.Builder
		for _, item := range v {
			out.WriteString(allTexts(item) + "\n")
		}
		return out.String()
	}
	return ""
}

// TestConfigsRender checks that the variants are what their names say.
func TestConfigsRender(t *testing.T) {
	f := &configFile{program: "x", key: "y", text: "a: «word»\nb: \"«word»\"\nc: http://u:«word»@h\nd: «=x»\n"}
	f.draw(t)
	v := []any{f.marks[0].value, f.marks[1].value, f.marks[2].value}
	for _, tc := range []struct {
		quote byte
		crlf  bool
		want  string
	}{
		{0, false, "a: %s\nb: \"%s\"\nc: http://u:%s@h\nd: x\n"},
		{'\'', false, "a: '%s'\nb: '%s'\nc: http://u:%s@h\nd: 'x'\n"},
		{'"', true, "a: \"%s\"\r\nb: \"%s\"\r\nc: http://u:%s@h\r\nd: \"x\"\r\n"},
	} {
		if got, want := f.render(tc.quote, tc.crlf), fmt.Sprintf(tc.want, v...); got != want {
			t.Errorf("render(%q, %v) = %q, want %q", tc.quote, tc.crlf, got, want)
		}
	}
}

// TestConfigsParse checks that the files in JSON and YAML are, in all variants.
func TestConfigsParse(t *testing.T) {
	for _, f := range readConfigs(t) {
		for _, v := range f.variants() {
			var err error
			switch filepath.Ext(f.key) {
			case ".json":
				err = json.Unmarshal([]byte(v.text), new(any))
			case ".yaml", ".yml":
				for documents := yaml.NewDecoder(strings.NewReader(v.text)); err == nil; {
					err = documents.Decode(new(any))
				}
			}
			if err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("%s/%s, %s: %v in\n%s", f.program, f.key, v.name, err, v.text)
			}
		}
	}
}
