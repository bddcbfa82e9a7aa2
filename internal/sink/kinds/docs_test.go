package kinds_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/trace"
)

var block = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func traces() config.Options {
	o := trace.DefaultOptions()
	return &o
}

// TestDocsLoad loads every configuration in the docs: whole ones, lists of sinks, and traces. Package cloud loads those of
// its own sinks.
func TestDocsLoad(t *testing.T) {
	pages := []string{"../../../README.md"}
	for _, pattern := range []string{"../../../docs/*.md", "../../../docs/sinks/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	loaded := map[string]bool{}
	for _, page := range pages {
		if slices.Contains(elsewhere, strings.TrimSuffix(filepath.Base(page), ".md")) {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllSubmatchIndex(text, -1) {
			source := text[m[2]:m[3]]
			line := 1 + bytes.Count(text[:m[2]], []byte("\n"))
			switch {
			case bytes.Contains(source, []byte("apiVersion: tattler.dev")):
			case bytes.HasPrefix(source, []byte("sinks:")), bytes.HasPrefix(source, []byte("traces:")):
				source = append([]byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\n"), source...)
				line -= 2
			default:
				continue // of another program
			}
			l := &config.Loader{Sinks: kinds.Tattler().Types(), Traces: traces, LookupEnv: credential, ReadFile: func(string) ([]byte, error) { return []byte("a-word\n"), nil }}
			c, err := l.Parse(page, source)
			if err != nil {
				t.Errorf("%s, the block before line %d: %v", page, line, err)
				continue
			}
			for _, s := range c.Sinks {
				loaded[s.Type] = true
			}
		}
	}
	for _, k := range kinds.Builtin() {
		if !loaded[k.Name] {
			t.Errorf("no page shows a configuration of a %s sink", k.Name)
		}
	}
}

// elsewhere lists the pages of sinks that are not built in.
var elsewhere = []string{"sns", "sqs", "pubsub", "servicebus"}

// credential returns the value of an environment variable in the docs.
func credential(name string) (string, bool) {
	switch {
	case strings.Contains(name, "SLACK"):
		return "https://hooks.slack.com/services/T00000000/B00000000/aaaaaaaaaaaaaaaaaaaaaaaa", true
	case strings.HasSuffix(name, "_URL"):
		return "https://example.com/hook", true
	}
	return "a-word", true
}
