package history

import (
	"context"
	"strings"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
)

// NamesOf returns a kind's names as discovery would, as far as the journal knows.
func (t *Builder) NamesOf(ctx context.Context, k journal.Kind) change.Names {
	n := change.Names{Singular: strings.ToLower(k.Kind)}
	if short := t.ShortNames(ctx, k); len(short) > 0 {
		n.Short = short[0]
	}
	return n
}

// ShortNames returns a kind's short names from the journal, or those of the built-in kinds. They are read when the kind is
// first used.
func (t *Builder) ShortNames(ctx context.Context, k journal.Kind) []string {
	resource := k.GroupResource()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.named[resource] {
		if short, err := t.source.ShortNames(ctx); err == nil { // without them, a line shows the singular
			t.short, t.named[resource] = short, true
		}
	}
	if short, ok := t.short[resource]; ok {
		return short
	}
	return builtIn[resource]
}

// Source: discovery of a 1.36 API server.
var builtIn = map[string][]string{
	"certificatesigningrequests.certificates.k8s.io": {"csr"},
	"componentstatuses": {"cs"},
	"configmaps":        {"cm"},
	"cronjobs.batch":    {"cj"},
	"customresourcedefinitions.apiextensions.k8s.io": {"crd", "crds"},
	"daemonsets.apps":                      {"ds"},
	"deployments.apps":                     {"deploy"},
	"endpoints":                            {"ep"},
	"events":                               {"ev"},
	"horizontalpodautoscalers.autoscaling": {"hpa"},
	"ingresses.networking.k8s.io":          {"ing"},
	"limitranges":                          {"limits"},
	"namespaces":                           {"ns"},
	"networkpolicies.networking.k8s.io":    {"netpol"},
	"nodes":                                {"no"},
	"persistentvolumeclaims":               {"pvc"},
	"persistentvolumes":                    {"pv"},
	"poddisruptionbudgets.policy":          {"pdb"},
	"pods":                                 {"po"},
	"priorityclasses.scheduling.k8s.io":    {"pc"},
	"replicasets.apps":                     {"rs"},
	"replicationcontrollers":               {"rc"},
	"resourcequotas":                       {"quota"},
	"serviceaccounts":                      {"sa"},
	"services":                             {"svc"},
	"statefulsets.apps":                    {"sts"},
	"storageclasses.storage.k8s.io":        {"sc"},
}
