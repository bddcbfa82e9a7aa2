package config

import (
	"bytes"
	_ "embed" // reference.json, example.yaml
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"
	"unicode"

	"github.com/tattler-dev/tattler/internal/spell"
)

// reference.json is generated from the types' comments and tags by `go test ./internal/config -update`.
//
//go:embed reference.json
var referenceText []byte

//go:embed example.yaml
var exampleText string

// Key is a key of the file in the reference.
type Key struct {
	// Path is the key with its parents: sinks[].retry.min.
	Path string `json:"path"`
	// Type describes the accepted values in words.
	Type string `json:"type"`
	// Default is the value of an absent key, or a description of it in words; empty for none.
	Default string `json:"default,omitempty"`
	// Doc describes the key, in sentences.
	Doc string `json:"doc"`
}

// Keys is the reference: every key of the file, in file order, including those of all sinks, also those only in
// tattler-cloud.
var Keys = sync.OnceValue(func() []Key {
	var keys []Key
	if err := json.Unmarshal(referenceText, &keys); err != nil {
		panic("reference.json: " + err.Error())
	}
	return keys
})

// described reports whether the reference has a key.
func described(path string) bool {
	return slices.ContainsFunc(Keys(), func(k Key) bool { return k.Path == path })
}

// anyElement is an index in a key's path.
var anyElement = regexp.MustCompile(`\[\d+\]`)

// homes returns the keys of the reference below which a name belongs that is unknown below a key: those that have the most
// parents in common with that key, and of these the ones nearest to the top. A key far below is no home: it is about something
// else.
func homes(name, key string) (all []string) {
	here, best := parts(key), 0
	for _, home := range parents(name) {
		there := parts(home)
		common := 0
		for common < min(len(here), len(there)) && here[common] == there[common] {
			common++
		}
		near := 100*common - len(there)
		switch below := len(there) - common; {
		case below > 1 && len(there) > 2, all != nil && near < best:
		case all == nil || near > best:
			all, best = []string{home}, near
		default:
			all = append(all, home)
		}
	}
	return all
}

// parents returns the keys of the reference, in its order, that have a key of this name below them; the file is the empty key.
func parents(name string) (all []string) {
	for _, k := range Keys() {
		if parent, is := strings.CutSuffix("."+k.Path, "."+name); is {
			all = append(all, strings.TrimPrefix(parent, "."))
		}
	}
	return all
}

// either lists words of which one is meant: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// parts splits a key's path: sinks[0].retry is sinks[] and retry. The empty key has none.
func parts(key string) []string {
	if key == "" {
		return nil
	}
	return strings.Split(anyElement.ReplaceAllString(key, "[]"), ".")
}

// plain normalizes a key's path: sinks.where, sinks[0].where and sinks[].where are equal.
func plain(path string) string {
	var b strings.Builder
	within := false
	for _, r := range strings.Trim(path, ".") {
		within = (within || r == '[') && r != ']'
		if !within && r != ']' {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// Explain describes a key and the keys below it. The empty key is the file. For an unknown key, the error
// suggests a similar one.
func Explain(key string) (string, error) {
	var b strings.Builder
	want, found := plain(key), key == ""
	var paths []string
	for _, k := range Keys() {
		at := plain(k.Path)
		paths = append(paths, at)
		switch {
		case at == want:
			found = true
			fmt.Fprintf(&b, "%s: %s\n", k.Path, k.kind())
			fmt.Fprintf(&b, "%s\n", wrap(k.Doc, "    "))
		case strings.HasPrefix(at, want+".") && want != "" || want == "" && !strings.Contains(at, "."):
			fmt.Fprintf(&b, "\n  %s: %s\n%s\n", k.Path, k.kind(), wrap(k.Doc, "      "))
		}
	}
	if found {
		return strings.TrimPrefix(b.String(), "\n"), nil
	}
	if near := spell.Nearest(want, paths); near != "" {
		return "", fmt.Errorf("explain %s: no such key; did you mean %s?", key, Keys()[slices.Index(paths, near)].Path)
	}
	before, last, _ := cutLast(key)
	all := homes(last, before)
	if len(all) == 0 {
		all = parents(last)
	}
	if len(all) > 0 {
		for i, parent := range all {
			all[i] = join(parent, last)
		}
		return "", fmt.Errorf("explain %s: no such key; did you mean %s?", key, either(all))
	}
	return "", fmt.Errorf("explain %s: no such key; `tattler config explain` lists them", key)
}

func cutLast(key string) (before, after string, found bool) {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)], key[i+1:], i >= 0
}

func (k Key) kind() string {
	if k.Default == "" {
		return k.Type
	}
	return k.Type + ", default " + k.Default
}

// wrap breaks a text into lines of about 90 characters, each after the indent.
func wrap(text, indent string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(indent)+len(line)+1+len(word) > 90 {
			lines = append(lines, indent+line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, indent+line), "\n")
}

// Example is a file to start with. Prose is in comments with a space after the #; a line with # and no space is
// a key, enabled by deleting the #.
var Example = sync.OnceValue(func() string {
	var b bytes.Buffer
	t := template.Must(template.New("example").Funcs(template.FuncMap{"doc": comment}).Parse(exampleText))
	if err := t.Execute(&b, nil); err != nil {
		panic("example.yaml: " + err.Error())
	}
	return b.String()
})

// comment returns a key's text from the reference as a comment.
func comment(indent int, path string) (string, error) {
	i := slices.IndexFunc(Keys(), func(k Key) bool { return k.Path == path })
	if i < 0 {
		return "", fmt.Errorf("no such key: %s", path)
	}
	text := Keys()[i].Doc
	if def := Keys()[i].Default; def != "" {
		text += " Default: " + def + "."
	}
	text = wrap(text, strings.Repeat(" ", indent)+"# ")
	return strings.TrimLeft(text, " "), nil
}

// Markdown returns the reference as in docs/config.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(markdownHead)
	b.WriteString("| Expression | Selects |\n| --- | --- |\n")
	for _, e := range expressions {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(e.cel, "|", `\|`), e.selects)
	}
	for _, k := range Keys() {
		if !strings.Contains(k.Path, ".") {
			fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", k.Path, k.Doc)
			if rows := below(k.Path); rows != "" {
				b.WriteString("\n| Key | Takes | Default | |\n| --- | --- | --- | --- |\n" + rows)
			}
		}
	}
	fmt.Fprintf(&b, "\n## Example file\n\n`tattler config init` writes this file:\n\n```yaml\n%s```\n", Example())
	return b.String()
}

func below(top string) string {
	var b strings.Builder
	for _, k := range Keys() {
		if !isBelow(k.Path, top) {
			continue
		}
		def := cell.Replace(k.Default) // a sentence
		if k.Default != "" && !strings.Contains(k.Default, " ") {
			def = "`" + k.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Path, k.Type, def, cell.Replace(k.Doc))
	}
	return b.String()
}

// cell escapes characters with a meaning in Markdown tables.
var cell = strings.NewReplacer("|", `\|`, "*", `\*`)

// expressions are the examples of where in docs/config.md.
var expressions = []struct{ cel, selects string }{
	{`op == "deleted" && resource.namespace == "shop"`, "deletions in one namespace"},
	{`resource.kind in ["Deployment", "StatefulSet", "DaemonSet"] && touches("spec.**")`, "changes of the desired state of workloads, not of their status; and new and deleted workloads"},
	{`touches("spec.**.image")`, "new images of workloads, pods and custom resources"},
	{`resource.kind == "Node" && touches("spec.unschedulable")`, "nodes that are cordoned or uncordoned"},
	{`changes.exists(c, c.manager.startsWith("kubectl"))`, "updates made with kubectl"},
	{`op == "updated" && !changes.exists(c, c.manager == "argocd-controller")`, "updates that Argo CD did not make"},
	{`resource.kind == "Deployment" && has(after.spec) && after.spec.replicas == 0`, "Deployments scaled to zero"},
	{`changes.exists(c, c.path == "spec.replicas" && c.from > c.to)`, "scaling down"},
	{`resource.group == "rbac.authorization.k8s.io" && op != "snapshot"`, "changes of RBAC rights"},
	{`op in ["gap", "absent"]`, "gaps and absences"},
	{`!resource.namespace.matches("^(kube-|ci-)") && resource.owner.kind != "Job"`, "everything except some namespaces and objects owned by Jobs"},
	{`has(after.metadata) && has(after.metadata.labels) && "team" in after.metadata.labels && after.metadata.labels.team == "shop"`, "objects of one team, by a label that others may lack"},
}

const markdownHead = `# The configuration

<!-- Generated from the comments of internal/config and of the sinks by ` + "`go test ./internal/config -update`" + `. -->

` + "`tattler run -c FILE`" + ` reads one YAML file, strictly: an unknown key, a wrong type, or a repeated key is an
error that names the line. ` + "`tattler config check -c FILE`" + ` shows what a file would do.
` + "`tattler config explain KEY`" + ` describes a key.

- A duration is one or more numbers, each with a unit: ` + "`90s`, `1h30m`, `12h`, `30d`, `2w`" + `.
- A size is a whole number, usually with a unit. The units in ` + "`64Ki`, `100Mi` and `1Gi`" + ` are powers of 1024, the unit in
  ` + "`100M`" + ` is a power of 1000. A number without a unit means bytes.
- In the options of a sink and of ` + "`traces`, `${env:NAME}`" + ` is replaced by an environment variable, and ` + "`${file:/path}`" + ` by the content of a
  file, without the final newline. A reference to a variable that is unset or empty, or to a file that is unreadable
  or empty, is an error. The text ` + "`${`" + ` is written ` + "`$${`" + `.
- For paths and patterns, see [paths.md](paths.md).
- ` + "`where`" + ` is written in [CEL](https://cel.dev), with these variables:

| | |
| --- | --- |
| ` + "`op`" + ` | what happened: created, updated or deleted; snapshot (the object existed when its kind was first watched), entered or left (an existing object began or ceased to match the selection), gap (versions were missed), converted (the API server serves the same version in another form) or absent (Tattler did not watch for a while) |
| ` + "`severity`" + ` | failure (such as CrashLoopBackOff, a rollout beyond its deadline, a node that is not ready), warning, recovery or change |
| ` + "`cluster`" + ` | the name of the object's cluster, as in the event's source |
| ` + "`resource`" + ` | the object's group, version, resource (its plural), kind, namespace, name, uid, resourceVersion, owner |
| ` + "`changes`" + ` | the changed fields of an update, each with path, op (add, remove, replace, reorder), from, to, manager, subresource, quiet, whole |
| ` + "`before`, `after`" + ` | the object before and after the change; empty if the object did not exist at that time |
| ` + "`touches(\"PATTERN\")`" + ` | reports whether a field at, above or below the pattern changed, or exists in an object that appeared or disappeared; quiet fields do not count |

An expression fails on a change if the object lacks a key that the expression reads, if the value of such a key has
a different type from the one that the expression needs, or if the object is so large that evaluation costs too much. The sink gets such a
change, with the cause in the event's ` + "`data.filterError`" + `: otherwise, users who write objects could hide changes. So an
expression should first test the kind, and any key that may be absent:
` + "`resource.kind == \"Deployment\" && has(after.spec) && after.spec.replicas > 3`" + `.

A manager is a program's name for its writes (` + "`kubectl-set`, `helm`, `argocd-controller`" + `): a tool, not a person.
Only the API server's audit log names the person.

Examples:

`
