package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write reference.json and docs/config.md")

// TestReferenceIsFresh generates the reference from the comments and tags of the decoded types: those of this
// package, every sink's Options, including tattler-cloud's, and those of traces.
func TestReferenceIsFresh(t *testing.T) {
	own := readSource(t, ".")
	keys := own.keys(t, "", "Config")
	imports := map[string]*source{"sink": readSource(t, "../sink"), "amazon": readSource(t, "../../cloud/internal/amazon")}
	at := slices.IndexFunc(keys, func(k Key) bool { return k.Path == "listen" })
	var sinks []Key
	for _, from := range []struct{ dirs, note string }{{"../sink/*", ""}, {"../../cloud/*", " Only tattler-cloud has it."}} {
		dirs, err := filepath.Glob(from.dirs)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			s := readSource(t, dir)
			s.imports = imports
			if s.structs["Options"] == nil {
				continue // sinktest is not a sink
			}
			path := "sinks[]." + filepath.Base(dir)
			sinks = append(sinks, Key{Path: path, Type: "object", Doc: s.purpose + from.note})
			sinks = append(sinks, s.keys(t, path+".", "Options")...)
		}
	}
	traces := readSource(t, "../trace")
	traces.imports = imports
	sinks = append(sinks, Key{Path: tracesKey, Type: "object", Doc: own.doc("Config", tracesKey, own.comments["Traces"])})
	sinks = append(sinks, traces.keys(t, tracesKey+".", "Options")...)
	keys = slices.Insert(keys, at, sinks...)
	text, err := json.MarshalIndent(keys, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "reference.json", append(text, '\n'))
	if t.Failed() || *update {
		referenceText = text
		Keys = func() []Key { return keys }
	}
	golden(t, "../../docs/config.md", []byte(Markdown()))
}

func golden(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s does not match the comments: run `go test ./internal/config -update`", file)
	}
}

func TestExample(t *testing.T) {
	example := Example()
	if strings.Contains(example, "{{") || strings.Contains(example, "<no value>") {
		t.Error("the example is not made")
	}
	l := &Loader{Sinks: types(), Traces: func() Options { return &fakeTraces{} }}
	c, err := l.Parse("example", []byte(example))
	if err != nil {
		t.Fatalf("the example does not load:\n%v", err)
	}
	if len(c.Sinks) != 1 || c.Sinks[0].Type != "log" || len(c.Watch) != 1 {
		t.Errorf("the example says %+v", c)
	}

	// Comments without a space can all be enabled at once.
	taken := regexp.MustCompile(`(?m)^#(\S| +\S)`).ReplaceAllStringFunc(example, func(s string) string {
		if strings.HasPrefix(s, "# ") && !strings.HasPrefix(s, "#  ") {
			return s
		}
		return s[1:]
	})
	c, err = l.Parse("example", []byte(taken))
	if err != nil {
		t.Fatalf("the example with all its keys does not load:\n%v\n%s", err, taken)
	}
	if len(c.Sinks) != 3 || len(c.Quiet) != 1 || len(c.Redact) != 1 || c.Cluster.Name != "prod" || c.Listen.Address == "" ||
		c.Log.Format != "json" || c.Traces == nil || c.Journal.Path == "" || c.Sinks[2].Filter == nil || c.Watch[0].LabelSelector == "" {
		t.Errorf("not every key was taken in: %+v", c)
	}
	for _, line := range strings.Split(example, "\n") {
		if len(line) > 110 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, tc := range []struct{ why, key, want string }{
		{"a key", "journal.retain.age", "journal.retain.age: duration, default 30d\n    How long"},
		{"with those below", "journal.retain", "\n  journal.retain.size: size, default 1Gi\n"},
		{"an element of a list", "sinks[0].where", "sinks[].where: text\n"},
		{"without brackets", "sinks.retry.min", "sinks[].retry.min: duration, default 1s"},
		{"letters of another case", "SINKS.MAXBYTES", "sinks[].maxBytes: size"},
		{"the file", "", "\n  journal: object\n"},
	} {
		got, err := Explain(tc.key)
		if err != nil || !strings.Contains("\n"+got, tc.want) {
			t.Errorf("%s: %v\n%s", tc.why, err, got)
		}
	}
	if got, _ := Explain(""); strings.Contains(got, "retain") {
		t.Errorf("the file's keys are more than the top ones:\n%s", got)
	}
	for _, tc := range []struct{ why, key, want string }{
		{"a typing mistake", "cluster.nmae", "did you mean cluster.name?"},
		{"a key elsewhere", "retain", "did you mean journal.retain?"},
		{"a key of several places", "topic", "did you mean sinks[].kafka.topic, sinks[].mqtt.topic, sinks[].pubsub.topic or sinks[].sns.topic?"},
		{"a key far below", "to", "did you mean sinks[].notify.quietHours.to?"},
		{"none", "frobnicate", "lists them"},
	} {
		if _, err := Explain(tc.key); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error that says %q", tc.why, err, tc.want)
		}
	}
}
