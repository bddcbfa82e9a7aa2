package migrate

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

var update = flag.Bool("update", false, "write the results into testdata")

// TestFiles reads testdata: in is the tool's file; out the result, which must load; notes its notes.
func TestFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) < 4 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(archive.Files) != 3 {
			t.Fatalf("%s: want the files in, out, notes", path)
		}
		in, out, notes := archive.Files[0], &archive.Files[1], &archive.Files[2]
		tool, _, _ := strings.Cut(filepath.Base(path), "-")
		r, err := File(tool, in.Data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		said := []byte(strings.Join(r.Notes, "\n") + "\n")
		if *update {
			out.Data, notes.Data = []byte(r.YAML), said
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if r.YAML != string(out.Data) || !bytes.Equal(bytes.TrimSpace(said), bytes.TrimSpace(notes.Data)) {
			t.Errorf("%s: got\n%s%s", path, r.YAML, said)
		}
		if strings.Contains(r.YAML+string(said), "s3cr3t") {
			t.Errorf("%s: the result contains a credential", path)
		}
		l := &config.Loader{Sinks: kinds.Tattler().Types(), LookupEnv: func(name string) (string, bool) {
			address, ok := map[string]string{
				"SLACKWEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/y",
				"SLACK_URL":        "https://hooks.slack.com/services/T0/B0/x", "MATTERMOST_URL": "https://mm.example.com/hooks/x",
				"TEAMS_URL": "https://prod.westeurope.logic.azure.com/x", "LARK_URL": "lark://open.larksuite.com/x",
				"MAIL_URL":    "smtp://u:p@mail.example.com:587/?from=kw@example.com&to=ops@example.com",
				"WEBHOOK_URL": "https://example.com/x", "CLOUDEVENT_URL": "https://example.com/y",
			}[name]
			return address, ok
		}}
		if _, err := l.Parse(path, []byte(r.YAML)); err != nil {
			t.Errorf("%s: the result does not load: %v", path, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct{ why, tool, text, want string }{
		{"another tool", "botkube", "a: b", "import from botkube: unknown tool: use one of kubediff, kubewatch"},
		{"an empty file", "kubewatch", "", "read the file of kubewatch: it contains no configuration: EOF"},
		{"invalid YAML", "kubewatch", "a: [", "read the file of kubewatch: it contains no configuration"},
		{"a list", "kubewatch", "- a", "line 1: want keys such as handler"},
		{"a manifest without the file", "kubewatch", "apiVersion: v1\nkind: Deployment\n", "it contains no configuration"},
		{"a ConfigMap without the file", "kubewatch", "apiVersion: v1\nkind: ConfigMap\ndata: {x: y}\n", "no key that ends with .yaml"},
		{"nothing to watch", "kubewatch", "resource: {pod: false}", "resource: no kind is true"},
		{"an invalid boolean", "kubewatch", "resource:\n  pod: perhaps\n", "line 2: resource.pod: want true or false"},
		{"nothing to watch", "kubediff", "mode: watch", "resources is empty"},
		{"a resource without a kind", "kubediff", "resources:\n- name: x\n", "line 2: a resource without a kind"},
		{"all and another namespace", "kubediff", "resources: [{kind: v1/pods}]\nnamespaces: [all, a]\n", "kubediff refuses that"},
	} {
		if _, err := File(tc.tool, []byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
}
