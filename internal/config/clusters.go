package config

import (
	"fmt"
	"strings"
)

// NamedCluster is one of several clusters that are recorded into one journal.
type NamedCluster struct {
	// Name is the cluster's name in events, and in the flag --cluster of the commands that read the journal. The
	// journal keeps the cluster's streams under this name: after a change of the name, the cluster's objects are
	// recorded as those of a new cluster.
	Name string `yaml:"name"`
	// Kubeconfig is the file that has the context. The default is --kubeconfig, $KUBECONFIG or ~/.kube/config.
	Kubeconfig string `yaml:"kubeconfig"`
	// Context is the context in the kubeconfig. Without this key, the current context of the file in kubeconfig is
	// used. Set context, kubeconfig or both; or set only inCluster.
	Context string `yaml:"context"`
	// InCluster uses the service account of the pod instead of a context.
	InCluster bool `yaml:"inCluster"`
	// Watch replaces the top-level watch for this cluster.
	Watch []Watch `yaml:"watch"`
	// SameUsers declares that a user or group of the first cluster is the same person or group in this cluster. Access
	// reviews of this cluster then decide which of its changes an authenticated viewer of the web page sees. Otherwise
	// authenticated viewers see no changes of this cluster. The first cluster, which authenticates viewers, does not
	// need this key.
	SameUsers bool `yaml:"sameUsers"`
}

func (d *decoder) clusters(list []NamedCluster) {
	first := map[string]int{}
	for i, c := range list {
		at := fmt.Sprintf("clusters[%d]", i)
		switch before, again := first[c.Name]; {
		case c.Name == "":
			d.failAt(at, "without a name: set one, such as prod")
		case strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r == ',' }):
			d.failAt(at+".name", "%q: want a name without spaces and commas", c.Name)
		case again:
			d.failAt(at+".name", "clusters[%d] has the name %q already", before, c.Name)
		default:
			first[c.Name] = i
		}
		if strings.HasPrefix(c.Kubeconfig, "~") {
			d.failAt(at+".kubeconfig", "~ is not expanded here: write the full path")
		}
		switch {
		case c.InCluster && c.Context+c.Kubeconfig != "":
			d.failAt(at+".inCluster", "a pod's service account and a context exclude each other: omit one of them")
		case !c.InCluster && c.Context+c.Kubeconfig == "":
			d.failAt(at, "which cluster? set context, kubeconfig, or inCluster: true")
		}
		d.watches(at+".watch", c.Watch)
	}
}
