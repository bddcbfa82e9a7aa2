package redact

import (
	"encoding/base64"
	"strings"
	"testing"
)

// slashes are lines with a slash that may precede a credential's line, or its field on the same line.
var slashes = []string{
	"dir: /data\n", "url: http://db/app\n", "image: repo/app\n", "# see docs/config\n", "- name: x/y\n", "a/b: c\n", "x: [a/b]\n", "/x\n", "a/\n",
	"x: a/b,\n", "name: x/y # z\n", "'a/b': \"c/d\"\n", "{path: /x, ", "path=/x ", "a/b:\n  ", "// a/b\n", "/* a/b */\n", "x: /\n\n\n", "example.com/",
	"- path: /a/b\n  ", "\tdir: /data\n\t", "dir: C:\\x/y\n",
}

// TestSlashBefore looks for credentials after each of them, in every carrier of texts, with both line ends and with quotes.
func TestSlashBefore(t *testing.T) {
	r := redactor(t)
	for _, before := range slashes {
		for _, name := range []string{"password", "db.password", "api-token", `"password"`, "'client_secret'"} {
			for _, value := range []string{": CANARY\n", ": 'CANARY'\n", ": \"CANARY\"\n", ":\n    CANARY\n", ": |\n    CANARY\n"} {
				text := before + name + value
				switch {
				case strings.HasPrefix(before, "{"):
					if strings.Contains(value, "    ") {
						continue
					}
					text = strings.TrimSuffix(text, "\n") + "}\n"
				case strings.HasPrefix(before, "path="):
					text = before + strings.Trim(name, `"'`) + "=CANARY\n"
				}
				text = "a: b\n" + text + "c: d\n"
				for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n")} {
					c := &canaries{}
					text = strings.ReplaceAll(text, "CANARY", c.text())
					for resource, obj := range map[string]map[string]any{
						configMaps:            {"data": map[string]any{"a": text, "b": base64.StdEncoding.EncodeToString([]byte(text))}},
						"services":            {"metadata": map[string]any{"annotations": map[string]any{"example.com/a": text}}},
						"widgets.example.com": {"spec": map[string]any{"a": text, "b": base64.StdEncoding.EncodeToString([]byte(text))}},
					} {
						if _, err := r.Apply(resource, obj); err != nil {
							t.Fatal(err)
						}
						if got := encode(t, obj); len(c.leaked(got)) > 0 {
							t.Errorf("%s: leaked from %q:\n%s", resource, text, got)
						}
					}
				}
			}
		}
	}
}
