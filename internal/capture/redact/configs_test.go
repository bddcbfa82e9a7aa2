package redact

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
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
	"user-name":        "a user's name is the field's, and only the program's documentation says that the value is a password",
}

// configForms make canaries as programs expect them, all of them without special characters of any format.
var configForms = map[string]func(*rand.Rand) string{
	"password": func(r *rand.Rand) string { return letters(r, 9) + "-" + digits(r, 2) + letters(r, 4) },
	"word":     func(r *rand.Rand) string { return strings.ToLower(letters(r, 12)) },
	"words": func(r *rand.Rand) string {
		return strings.ToLower(letters(r, 6) + "-" + letters(r, 5) + "-" + letters(r, 6))
	},
	"digits": func(r *rand.Rand) string { return digits(r, 10) },
	"token":  func(r *rand.Rand) string { return letters(r, 7) + digits(r, 3) + letters(r, 26) + digits(r, 4) },
	"short":  func(r *rand.Rand) string { return letters(r, 7) + digits(r, 3) + letters(r, 14) },
	"hex":    func(r *rand.Rand) string { return hex.EncodeToString(random(r, 16)) },
	"hex64":  func(r *rand.Rand) string { return hex.EncodeToString(random(r, 32)) },
	"base64": func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString(random(r, 32)) },
	"base64url": func(r *rand.Rand) string {
		return base64.RawURLEncoding.EncodeToString(random(r, 33))
	},
	"uuid": func(r *rand.Rand) string {
		s := hex.EncodeToString(random(r, 16))
		return s[:8] + "-" + s[8:12] + "-4" + s[13:16] + "-a" + s[17:20] + "-" + s[20:]
	},
	"basic": func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString([]byte("app:" + letters(r, 16))) },
	"bcrypt": func(r *rand.Rand) string {
		return "$2y$10$" + letters(r, 20) + digits(r, 3) + letters(r, 30)
	},
	"block": func(r *rand.Rand) string { // the body of a key, over several lines
		s := base64.StdEncoding.EncodeToString(random(r, 144))
		return s[:64] + "\n" + s[64:128] + "\n" + s[128:]
	},
	"hexblock": func(r *rand.Rand) string {
		return hex.EncodeToString(random(r, 16)) + "\n" + hex.EncodeToString(random(r, 16)) + "\n" + hex.EncodeToString(random(r, 16))
	},
}

func letters(r *rand.Rand, n int) string {
	const all = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"
	return draw(r, all, n)
}

func digits(r *rand.Rand, n int) string { return draw(r, "123456789", n) }

func draw(r *rand.Rand, from string, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = from[r.IntN(len(from))]
	}
	return string(out)
}

func random(r *rand.Rand, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// configFile is a program's configuration in testdata/configs.
type configFile struct {
	program, key string // the program, and the file's name, which is its key in a ConfigMap
	quotes       string // the quotes that may stand around a value
	text         string // with marks
	marks        []configMark
}

// configMark is a marked value: «form» a credential, «=text» an ordinary value; «form ~name» has a limit.
type configMark struct {
	line   int
	source string // the line
	secret bool
	form   string
	limit  string
	value  string
	found  map[string][]string // by variant: the carriers in which a credential leaked, or an ordinary value was hidden
}

var markPattern = regexp.MustCompile(`["']?«(=?)([^«»~]*?)( ~[a-z-]+)?»["']?`)

// readConfigs reads the files. Each is named program/file, and followed by the quotes that its format allows.
func readConfigs(t *testing.T) (files []*configFile) {
	t.Helper()
	archives, err := filepath.Glob("testdata/configs/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			path, quotes, _ := strings.Cut(f.Name, " ")
			program, key, found := strings.Cut(path, "/")
			if !found {
				t.Fatalf("%s: %s: want program/file", name, f.Name)
			}
			file := &configFile{program: program, key: key, quotes: quotes, text: string(f.Data)}
			file.draw(t)
			files = append(files, file)
		}
	}
	return files
}

// draw gives each mark its value: the same in every run, so that a failure can be repeated.
func (f *configFile) draw(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(f.program + "/" + f.key))))
	for i, line := range strings.Split(f.text, "\n") {
		for _, m := range markPattern.FindAllStringSubmatch(line, -1) {
			mark := configMark{line: i + 1, source: strings.TrimSpace(line), secret: m[1] == "", form: m[2], limit: strings.TrimPrefix(m[3], " ~")}
			if mark.value = m[2]; mark.secret {
				form := configForms[m[2]]
				if form == nil {
					t.Fatalf("%s/%s:%d: unknown form %q", f.program, f.key, i+1, m[2])
				}
				mark.value = form(r)
			}
			if mark.limit != "" && configLimits[mark.limit] == "" {
				t.Fatalf("%s/%s:%d: unknown limit %q", f.program, f.key, i+1, mark.limit)
			}
			f.marks = append(f.marks, mark)
		}
	}
}

// render returns the text with its values, in the quotes if these are not zero.
func (f *configFile) render(quote byte, crlf bool) string {
	lines, next := strings.Split(f.text, "\n"), 0
	for i, line := range lines {
		both := strings.Contains(line, `"`) && strings.Contains(line, "'")
		var out strings.Builder
		done := 0
		for _, at := range markPattern.FindAllStringIndex(line, -1) {
			value, form := f.marks[next].value, f.marks[next].form
			next++
			before, after, indent := line[done:at[0]], line[at[1]:], line[:len(line)-len(strings.TrimLeft(line, " \t"))]
			value = strings.ReplaceAll(value, "\n", "\n"+indent)
			open, end := openQuote(line[at[0]:]), openQuote(line[at[1]-1:])
			switch {
			case quote != 0 && !both && open != "" && open == end:
				value = string(quote) + value + string(quote)
			case quote != 0 && !both && open+end == "" && !strings.HasSuffix(form, "block") && isWhole(line[:at[0]], after):
				value = string(quote) + value + string(quote)
			default:
				value = open + value + end
			}
			out.WriteString(before + value)
			done = at[1]
		}
		lines[i] = out.String() + line[done:]
	}
	text := strings.Join(lines, "\n")
	if crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// openQuote returns the quote at the start of s, if there is one.
func openQuote(s string) string {
	if s[0] == '"' || s[0] == '\'' {
		return s[:1]
	}
	return ""
}

// isWhole reports whether what stands between the texts of a line is a whole value, and not a part of a URL, of
// a flag or of a header.
func isWhole(before, after string) bool {
	if strings.TrimSpace(before) == "" || after != "" && !strings.ContainsAny(after[:1], " \t,;)]}") {
		return false
	}
	if strings.Count(before, `"`)%2 == 1 || strings.Count(before, "'")%2 == 1 { // within quotes
		return false
	}
	word := before[strings.LastIndexAny(before, " \t")+1:]
	if word != "" {
		return strings.HasSuffix(word, "=") && word[0] != '-' && !strings.ContainsAny(word, "?&;:,/\"'")
	}
	words := strings.Fields(before)
	switch words[len(words)-1] {
	case "Bearer", "Basic", "Token", "Splunk":
		return false
	}
	return true
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
	files := readConfigs(t)
	programs, limits := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		programs[f.program] = true
		t.Run(f.program+"/"+f.key, func(t *testing.T) {
			secrets, ordinary := 0, 0
			for _, m := range f.marks {
				limits[m.limit] = true
				if m.secret {
					secrets++
					continue
				}
				ordinary++
				if n := strings.Count(f.render(0, false), m.value); n != 1 {
					t.Fatalf("%s/%s:%d: the value occurs %d times, want 1", f.program, f.key, m.line, n)
				}
			}
			if secrets == 0 || ordinary == 0 {
				t.Fatal("want both credentials and ordinary values to be marked")
			}
			for _, c := range configCarriers {
				for _, quote := range append([]byte{0}, f.quotes...) {
					for _, crlf := range []bool{false, true} {
						variant := map[byte]string{0: "plain", '"': "double", '\'': "single"}[quote] + map[bool]string{false: "-lf", true: "-crlf"}[crlf]
						t.Run(c.name+"/"+variant, func(t *testing.T) {
							text := f.render(quote, crlf)
							object := decode(t, encode(t, c.object(f.key, text)))
							if !r.Wants(c.resource, []byte(encode(t, object))) {
								t.Error("Wants is false")
							}
							if _, err := r.Apply(c.resource, object); err != nil {
								t.Fatal(err)
							}
							if lines := f.check(allTexts(object), c.name, variant, c.hidesWhole(text)); len(lines) > 0 {
								t.Errorf("wrong in lines %v, see the summary", lines)
							}
						})
					}
				}
			}
			f.summarize(t)
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
func (f *configFile) summarize(t *testing.T) {
	t.Helper()
	var out strings.Builder
	for _, m := range f.marks {
		what := map[bool]string{true: "leaked", false: "hidden for nothing"}[m.secret]
		switch {
		case m.limit != "" && len(m.found) == 0:
			fmt.Fprintf(&out, "  line %d: %s\n    is right: remove the mark ~%s\n", m.line, m.source, m.limit)
		case m.limit == "" && len(m.found) > 0:
			fmt.Fprintf(&out, "  line %d: %s\n    %s in %s\n", m.line, m.source, what, m.where(2+2*len(f.quotes)))
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
		for _, quote := range append([]byte{0}, f.quotes...) {
			for _, crlf := range []bool{false, true} {
				text, err := f.render(quote, crlf), error(nil)
				switch filepath.Ext(f.key) {
				case ".json":
					err = json.Unmarshal([]byte(text), new(any))
				case ".yaml", ".yml":
					for documents := yaml.NewDecoder(strings.NewReader(text)); err == nil; {
						err = documents.Decode(new(any))
					}
				}
				if err != nil && err != io.EOF {
					t.Errorf("%s/%s: %v in\n%s", f.program, f.key, err, text)
				}
			}
		}
	}
}
