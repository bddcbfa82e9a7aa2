package rbac

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// viewerRoles are roles for viewers of the web page, for what is not an object of the cluster.
var viewerRoles = []struct {
	suffix, why string
	actions     []auth.Action
}{
	{"status", "For viewers of the web page: the status of streams, sinks and the journal. What they see of objects depends on " +
		"their right to get them. Bind this role to those who need it, such as: kubectl create clusterrolebinding NAME " +
		"--clusterrole=ROLE --user=USER", []auth.Action{auth.SeeStatus}},
	{"sinks", "For viewers who may also control sinks: pause, resume and replay them, skip a change, and handle dead letters.",
		[]auth.Action{auth.SeeStatus, auth.ManageSinks}},
}

// viewers writes these roles if viewers are authenticated. They are not bound: Tattler does not know the viewers.
func (m *manifest) viewers(w io.Writer, web config.Web) error {
	if web.Address == "" || !web.Authenticates() {
		return nil
	}
	var b bytes.Buffer
	for _, r := range viewerRoles {
		name := m.name + "-" + r.suffix
		b.WriteString("---\n")
		comment(&b, strings.ReplaceAll(r.why, "ROLE", name))
		fmt.Fprintf(&b, "apiVersion: %s/v1\nkind: ClusterRole\nmetadata: {name: %s}\nrules:\n", api, text(name))
		for _, a := range r.actions {
			fmt.Fprintf(&b, "- nonResourceURLs: %s\n  verbs: %s\n", list([]string{a.URL}), list([]string{a.Verb}))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
