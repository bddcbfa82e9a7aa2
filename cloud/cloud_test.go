package cloud

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// names lists the sinks of this module.
var names = []string{"pubsub", "servicebus", "sns", "sqs"}

// loader loads files like the program, with a few credentials.
func loader() *config.Loader {
	return &config.Loader{
		Sinks:     Program().Types(),
		LookupEnv: func(string) (string, bool) { return "from the environment", true },
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "sinks", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block returns the first code block of a page in a language.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, text, found := strings.Cut(text, "```"+language+"\n")
	text, _, end := strings.Cut(text, "```")
	if !found || !end {
		t.Fatalf("no block of %s", language)
	}
	return text
}

// TestProgram checks that the program has the sinks of tattler and of this module.
func TestProgram(t *testing.T) {
	var got []string
	for _, k := range Program().Kinds {
		got = append(got, k.Name)
	}
	for _, k := range kinds.Builtin() {
		if !slices.Contains(got, k.Name) {
			t.Errorf("no sink %s", k.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(got, name) {
			t.Errorf("no sink %s", name)
		}
	}
	if want := len(kinds.Builtin()) + len(names); len(got) != want || len(slices.Compact(slices.Sorted(slices.Values(got)))) != want {
		t.Errorf("sinks %v", got)
	}
}

// TestElsewhere checks that tattler names the program that has these sinks, and that its reference has their keys.
func TestElsewhere(t *testing.T) {
	plain := &config.Loader{Sinks: kinds.Tattler().Types()}
	for _, k := range Kinds() {
		for scheme := range k.Schemes {
			if _, err := plain.SinkFromURL(scheme + "://x"); err == nil || !strings.Contains(err.Error(), "tattler-cloud has") {
				t.Errorf("--to %s: %v", scheme, err)
			}
		}
		file := "apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- {name: x, " + k.Name + ": {}}\n"
		if _, err := plain.Parse("f", []byte(file)); err == nil || !strings.Contains(err.Error(), "f:4:13: sinks[0]."+k.Name+": only tattler-cloud has this sink") {
			t.Errorf("%s: %v", k.Name, err)
		}
		said, err := config.Explain("sinks." + k.Name)
		if err != nil || !strings.Contains(said, "Only tattler-cloud has it.") {
			t.Errorf("explain %s: %v\n%s", k.Name, err, said)
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(k.New()).Elem()) {
			if key := f.Tag.Get("yaml"); key != "" && !strings.Contains(said, "sinks[]."+k.Name+"."+key+": ") {
				t.Errorf("explain %s lacks %s:\n%s", k.Name, key, said)
			}
		}
	}
}

// TestPages checks that the examples in the sinks' pages work, and mention every key.
func TestPages(t *testing.T) {
	for key, value := range map[string]string{"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CA_BUNDLE": "", "AWS_PROFILE": ""} {
		t.Setenv(key, value)
	}
	address := regexp.MustCompile(`--to '?([^\s']+)`)
	for _, name := range names {
		text := page(t, name)
		c, err := loader().Parse(name+".md", []byte(block(t, text, "yaml")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Sinks[0].Type != name {
			t.Errorf("%s: a sink of type %s", name, c.Sinks[0].Type)
		}
		for _, key := range keys(reflect.TypeOf(c.Sinks[0].Options).Elem()) {
			if !regexp.MustCompile("(?m)(^ +|`)" + key + "(:|`)").MatchString(text) {
				t.Errorf("%s: the page does not mention %s", name, key)
			}
		}
		to := address.FindStringSubmatch(block(t, text, "sh"))
		if to == nil {
			t.Fatalf("%s: no --to", name)
		}
		s, err := loader().SinkFromURL(to[1])
		if err != nil || s.Type != name {
			t.Errorf("%s: %v: %+v", to[1], err, s)
			continue
		}
		made, err := Program().Make(&s, kinds.Env{Agent: "tattler/test"})
		if err != nil {
			t.Errorf("%s: %v", to[1], err)
			continue
		}
		if !strings.HasPrefix(made.String(), name+" ") {
			t.Errorf("%s calls itself %q", name, made)
		}
		if err := made.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// keys returns the keys in a type's tags, including nested structs.
func keys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		out = append(out, f.Tag.Get("yaml"))
		if f.Type.Kind() == reflect.Struct {
			out = append(out, keys(f.Type)...)
		}
	}
	return out
}

// TestConsumers checks that the consumers in the pages are those that the tests compile and run.
func TestConsumers(t *testing.T) {
	for _, name := range names {
		text := page(t, name)
		if name == "sns" { // its page refers to that of SQS
			if !strings.Contains(text, "(sqs.md#a-consumer)") {
				t.Error("sns: no consumer")
			}
			continue
		}
		source, err := os.ReadFile(filepath.Join("consumer", name+".go"))
		if err != nil {
			t.Fatal(err)
		}
		if code := block(t, text, "go"); !strings.Contains(string(source), code) {
			t.Errorf("%s: the page's consumer is not that of consumer/%s.go", name, name)
		}
	}
}
