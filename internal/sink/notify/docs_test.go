package notify

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/config"
)

// TestDocs checks that the page's configuration is valid, and that its table names every scheme.
func TestDocs(t *testing.T) {
	page := string(must(os.ReadFile(filepath.Join("..", "..", "..", "docs", "sinks", "notify.md")))(t))
	_, rest, _ := strings.Cut(page, "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no file")
	}
	file := filepath.Join(t.TempDir(), "tattler.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLACK_WEBHOOK", "https://chat.example.com/hooks/w0rdw0rdw0rd")
	loader := config.Loader{Sinks: []config.SinkType{{Name: "notify", New: func() config.Options { return &Options{Window: DefaultWindow} }}}}
	c, err := loader.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if o := c.Sinks[0].Options.(*Options); o.QuietHours.To != "07:00" || o.Template == "" {
		t.Errorf("%+v", o)
	}
	for _, scheme := range Schemes() {
		scheme, _, _ = strings.Cut(scheme, "+")
		if scheme != "hangouts" && !regexp.MustCompile("`"+scheme+"://").MatchString(page) {
			t.Errorf("the page does not mention %s://", scheme)
		}
	}
}
