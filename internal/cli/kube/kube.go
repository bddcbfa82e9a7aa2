// Package kube finds the cluster as kubectl does: flags, KUBECONFIG, ~/.kube/config, or the service
// account of a pod.
package kube

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/usage"

	// The OIDC provider of kubeconfigs; exec plugins need no import.
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc"
)

// Flags are kubectl's connection flags.
type Flags struct {
	Kubeconfig, Context, As string
	AsGroups                []string
	// Pod uses the service account of a pod, whatever kubeconfig there is. No flag sets it.
	Pod bool
}

// Add declares the flags.
func (f *Flags) Add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig `file`")
	fs.StringVar(&f.Context, "context", "", "kubeconfig `context`; default: the current")
	fs.StringVar(&f.As, "as", "", "`user` to impersonate")
	fs.StringArrayVar(&f.AsGroups, "as-group", nil, "`group` to impersonate as well; repeatable")
	complete.Files(cmd, "kubeconfig")
}

// Cluster is the cluster that the flags select.
type Cluster struct {
	Config *rest.Config
	// Name is the context's name; in a pod "in-cluster".
	Name string
	// InPod reports whether the configuration is a pod's service account: then nothing names the cluster.
	InPod bool
	// Namespace is the context's namespace; "default" if it has none.
	Namespace string
}

// Load reads the kubeconfig. It does not talk to the server.
func (f *Flags) Load() (*Cluster, error) {
	if len(f.AsGroups) > 0 && f.As == "" {
		return nil, usage.Errorf("--as-group needs --as: a group is impersonated together with a user")
	}
	if f.Pod {
		return f.pod()
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	rules.WarnIfAllMissing = false
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.Context}
	overrides.AuthInfo.Impersonate = f.As
	overrides.AuthInfo.ImpersonateGroups = f.AsGroups
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)

	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	name, err := contextName(raw, f.Context)
	if err != nil {
		return nil, cmp.Or(f.missing(), err)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		if name == "" {
			if missing := f.missing(); missing != nil {
				return nil, missing
			}
			where := ""
			if files := cmp.Or(f.Kubeconfig, os.Getenv(clientcmd.RecommendedConfigPathEnvVar)); files != "" {
				where = " in " + files
			}
			return nil, fmt.Errorf("no cluster is configured%s: set KUBECONFIG or use --kubeconfig FILE (without a cluster, `make demo` starts one)", where)
		}
		return nil, fmt.Errorf("context %q of the kubeconfig: %w", name, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the namespace of context %q: %w", name, err)
	}
	inPod := name == ""
	if inPod {
		name = "in-cluster"
	}
	return finish(config, name, inPod, namespace), nil
}

// missing returns an error if KUBECONFIG counts, and names only files that do not exist.
func (f *Flags) missing() error {
	named := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if f.Kubeconfig != "" || len(named) == 0 || slices.ContainsFunc(named, func(file string) bool {
		_, err := os.Stat(file)
		return !errors.Is(err, fs.ErrNotExist)
	}) {
		return nil
	}
	if len(named) == 1 {
		return fmt.Errorf("KUBECONFIG names the file %s, which does not exist", named[0])
	}
	return fmt.Errorf("KUBECONFIG names the files %s, which do not exist", strings.Join(named, " and "))
}

// pod returns the cluster of the pod.
func (f *Flags) pod() (*Cluster, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("use the service account of the pod: %w", err)
	}
	config.Impersonate.UserName, config.Impersonate.Groups = f.As, f.AsGroups
	return finish(config, "in-cluster", true, "default"), nil
}

func finish(config *rest.Config, name string, inPod bool, namespace string) *Cluster {
	config.UserAgent = "tattler/" + buildinfo.Version()
	config.WarningHandler = rest.NoWarnings{}
	config.QPS, config.Burst = 50, 300 // kubectl's values; they limit discovery only
	return &Cluster{Config: config, Name: name, InPod: inPod, Namespace: namespace}
}

// contextName finds the context, and checks its references, because the loader's own errors do not list the contexts, and
// it treats a missing user as anonymous. The name is empty if the kubeconfig has no context: then only a pod's service
// account is left.
func contextName(raw clientcmdapi.Config, want string) (string, error) {
	name := raw.CurrentContext
	if want != "" {
		name = want
	}
	have := strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
	if name == "" {
		if have == "" {
			return "", nil
		}
		return "", fmt.Errorf("the kubeconfig has no current context: use --context with one of %s", have)
	}
	c, ok := raw.Contexts[name]
	switch {
	case !ok && have == "":
		return "", fmt.Errorf("the kubeconfig has no context %q: it has no contexts", name)
	case !ok:
		return "", fmt.Errorf("the kubeconfig has no context %q: it has %s", name, have)
	case raw.Clusters[c.Cluster] == nil:
		return "", fmt.Errorf("context %q refers to the cluster %q, which the kubeconfig does not have", name, c.Cluster)
	case c.AuthInfo != "" && raw.AuthInfos[c.AuthInfo] == nil:
		return "", fmt.Errorf("context %q refers to the user %q, which the kubeconfig does not have", name, c.AuthInfo)
	}
	return name, nil
}
