package ops

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/control"
)

// TestReadyzNamesMissingRights: also while everything is recorded, because a restart would need them. No namespace or
// object is named.
func TestReadyzNamesMissingRights(t *testing.T) {
	s := control.Status{Settled: true, MissingRights: []control.Lack{
		{Resource: "secrets", Namespace: "geheim", Verbs: []string{"list", "watch"}},
		{Resource: "secrets", Namespace: "geheimer", Verbs: []string{"list", "watch"}},
		{Resource: "namespaces", Name: "geheim", Verbs: []string{"get"}, Without: "less"},
	}}
	const lines = "missing right: list, watch secrets\nmissing right: get namespaces\n"
	if code, body := get(t, Options{Status: answering(s)}, "/readyz"); code != 200 || body != "ok\n"+lines {
		t.Errorf("%d: %q", code, body)
	}
	s.Journal.Error = "x"
	if code, body := get(t, Options{Status: answering(s)}, "/readyz"); code != 503 || body != "the journal cannot be written\n"+lines {
		t.Errorf("%d: %q", code, body)
	}
	for i := range 30 {
		s.MissingRights = append(s.MissingRights, control.Lack{Resource: fmt.Sprint("kind", i), Verbs: []string{"get"}})
	}
	if _, body := get(t, Options{Status: answering(s)}, "/readyz"); strings.Count(body, "\n") != 22 || !strings.HasSuffix(body, "\nand 12 more missing rights\n") {
		t.Errorf("%q", body)
	}
}

// TestReadyzNamesClusters: of several clusters, each missing right names its own.
func TestReadyzNamesClusters(t *testing.T) {
	s := control.Status{Settled: true, Clusters: []control.Cluster{{Name: "east", Settled: true}, {Name: "west", Settled: true}}, MissingRights: []control.Lack{
		{Cluster: "east", Resource: "secrets", Verbs: []string{"list"}}, {Cluster: "west", Resource: "secrets", Verbs: []string{"list"}},
	}}
	const want = "ok\ncluster east: missing right: list secrets\ncluster west: missing right: list secrets\n"
	if code, body := get(t, Options{Status: answering(s)}, "/readyz"); code != 200 || body != want {
		t.Errorf("%d: %q", code, body)
	}
}
