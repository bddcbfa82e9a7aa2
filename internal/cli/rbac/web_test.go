package rbac

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWeb: the rights to review viewers, and roles for them, where the page needs them alone.
func TestWeb(t *testing.T) {
	kubeconfig := serve(t)
	const (
		tokens = "ClusterRole /x: [authentication.k8s.io] [tokenreviews] create"
		access = "ClusterRole /x: [authorization.k8s.io] [subjectaccessreviews] create"
		tls    = "tls: {cert: /c, key: /k}"
	)
	viewers := []string{
		"ClusterRole /x-status: get /tattler/status",
		"ClusterRole /x-sinks: get /tattler/status", "ClusterRole /x-sinks: post /tattler/sinks",
	}
	for _, tc := range []struct {
		why, web string
		want     []string
	}{
		{"no page", "", nil},
		{"an open page", "web: {address: \"127.0.0.1:8081\"}", nil},
		{"tokens", "web: {address: \":8443\", tokens: true, " + tls + "}", append([]string{tokens, access}, viewers...)},
		{"client certificates", "web: {address: \":8443\", clientCA: /ca, " + tls + "}", append([]string{access}, viewers...)},
		{"a proxy", "web: {address: \":8443\", requestHeader: {clientCA: /ca, allowedNames: [p]}, " + tls + "}", append([]string{access}, viewers...)},
	} {
		file := write(t, "c.yaml", "apiVersion: tattler.dev/v1alpha1\nkind: Config\nwatch:\n- resources: {include: [pods]}\n"+tc.web+"\n")
		out, err := run(t, "--kubeconfig", kubeconfig, "-c", file, "--name", "x")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range read(t, out) {
			if strings.Contains(line, "review") || strings.HasPrefix(line, "ClusterRole /x-") {
				got = append(got, line)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", tc.why, diff, out)
		}
		if strings.Contains(out, "Binding\nmetadata: {name: x-") {
			t.Errorf("%s: viewers are bound:\n%s", tc.why, out)
		}
	}
}
