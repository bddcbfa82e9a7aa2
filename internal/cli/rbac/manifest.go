package rbac

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// manifest writes roles as YAML. It does so by hand because of the comments; a test reads the result with the API's types.
type manifest struct{ name, namespace, account string }

const head = `# The rights of tattler run with this configuration, made by tattler rbac. get lets a restart resume
# without a list. Discovery and OpenAPI (/api, /apis, /openapi, /version) need no rule: the cluster role
# system:discovery grants them to every authenticated user.
`

const api = "rbac.authorization.k8s.io"

// write writes a role and a binding for each role with rules.
func (m *manifest) write(w io.Writer, roles []role) error {
	var b bytes.Buffer
	b.WriteString(head)
	for _, r := range roles {
		if len(r.rules) > 0 {
			m.role(&b, r)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (m *manifest) role(b *bytes.Buffer, r role) {
	prefix, where := "Cluster", ""
	if r.namespace != "" {
		prefix, where = "", ", namespace: "+text(r.namespace)
	}
	if b.Len() > len(head) {
		b.WriteString("---\n")
	}
	fmt.Fprintf(b, "apiVersion: %s/v1\nkind: %sRole\nmetadata: {name: %s%s}\nrules:\n", api, prefix, text(m.name), where)
	for _, x := range r.rules {
		m.rule(b, x)
	}
	fmt.Fprintf(b, "---\napiVersion: %s/v1\nkind: %sRoleBinding\nmetadata: {name: %s%s}\n", api, prefix, text(m.name), where)
	fmt.Fprintf(b, "roleRef: {apiGroup: %s, kind: %sRole, name: %s}\n", api, prefix, text(m.name))
	fmt.Fprintf(b, "subjects:\n- {kind: ServiceAccount, name: %s, namespace: %s}\n", text(m.account), text(m.namespace))
}

func (m *manifest) rule(b *bytes.Buffer, r rule) {
	if r.why != "" {
		comment(b, r.why)
	}
	fmt.Fprintf(b, "- apiGroups: %s\n", list([]string{r.group}))
	fmt.Fprintf(b, "  resources: %s\n", list(r.resources))
	if r.names != nil {
		fmt.Fprintf(b, "  resourceNames: %s\n", list(r.names))
	}
	fmt.Fprintf(b, "  verbs: [%s]\n", strings.Join(r.verbs, ", "))
}

// lineWidth is the approximate length of a line.
const lineWidth = 100

// list returns a YAML flow sequence, broken into lines.
func list(texts []string) string {
	var b strings.Builder
	b.WriteByte('[')
	column := len("  resources: [")
	for i, t := range texts {
		t = text(t)
		if i > 0 {
			b.WriteByte(',')
			if column++; column+1+len(t) > lineWidth {
				b.WriteString("\n   ")
				column = len("   ")
			}
			b.WriteByte(' ')
			column++
		}
		b.WriteString(t)
		column += len(t)
	}
	b.WriteByte(']')
	return b.String()
}

// plain matches texts that YAML reads as strings, except for a few words.
var plain = regexp.MustCompile(`^[a-z][a-z0-9.-]*$`)

// text quotes texts that YAML would not read as strings, such as a star, a number, or the namespace no.
func text(s string) string {
	truths := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
	if plain.MatchString(s) && !slices.Contains(truths, s) {
		return s
	}
	return strconv.Quote(s)
}

func comment(b *bytes.Buffer, words string) {
	line := "#"
	for _, word := range strings.Fields(words) {
		if len(line)+1+len(word) > lineWidth {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
