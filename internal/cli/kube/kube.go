// Package kube finds the cluster as kubectl does: flags, KUBECONFIG, ~/.kube/config, or the service
// account of a pod.
package kube

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	// The OIDC provider of kubeconfigs; exec plugins need no import.
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc"
)

// Flags are kubectl's connection flags.
type Flags struct {
	Kubeconfig, Context, As string
	AsGroups                []string
}

// Add declares the flags.
func (f *Flags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "`file` to use instead of $KUBECONFIG or ~/.kube/config")
	fs.StringVar(&f.Context, "context", "", "kubeconfig `context` to use instead of the current one")
	fs.StringVar(&f.As, "as", "", "`user` to impersonate")
	fs.StringArrayVar(&f.AsGroups, "as-group", nil, "`group` to impersonate, with --as; may be repeated")
}

// Cluster is what the flags lead to.
type Cluster struct {
	Config *rest.Config
	// Name is the context's name, or "in-cluster".
	Name string
	// Namespace is the context's namespace; "default" where it has none.
	Namespace string
}

// Load reads the kubeconfig. It does not talk to the server.
func (f *Flags) Load(userAgent string) (*Cluster, error) {
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
		return nil, err
	}
	config, err := loader.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) || len(raw.Clusters) == 0 {
			return nil, errors.New("no cluster is configured: set KUBECONFIG or say --kubeconfig FILE (without a cluster, `make demo` brings one)")
		}
		return nil, fmt.Errorf("context %q of the kubeconfig: %w", name, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the namespace of context %q: %w", name, err)
	}
	if name == "" {
		name = "in-cluster"
	}
	config.UserAgent = userAgent
	config.WarningHandler = rest.NoWarnings{}
	config.QPS, config.Burst = 50, 300 // kubectl's; they bound discovery only
	return &Cluster{Config: config, Name: name, Namespace: namespace}, nil
}

// contextName checks the context by name, because the loader's own error does not say what there is.
func contextName(raw clientcmdapi.Config, want string) (string, error) {
	name := raw.CurrentContext
	if want != "" {
		name = want
	}
	if name == "" {
		return "", nil
	}
	if _, ok := raw.Contexts[name]; ok {
		return name, nil
	}
	var have []string
	for c := range raw.Contexts {
		have = append(have, c)
	}
	slices.Sort(have)
	if len(have) == 0 {
		return "", fmt.Errorf("the kubeconfig has no context %q: it has none at all", name)
	}
	return "", fmt.Errorf("the kubeconfig has no context %q: it has %s", name, strings.Join(have, ", "))
}

// Explain says what an error of the API server or of the way to it means and what to do.
func (c *Cluster) Explain(err error) error {
	var (
		status apierrors.APIStatus
		netErr net.Error
		urlErr *url.Error
	)
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server refused the credentials of context %q: they may have expired; log in again (%w)", c.Name, err)
	case errors.As(err, &status):
		return err
	case errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Errorf("the API server of context %q at %s does not answer: %w", c.Name, c.Config.Host, root(err))
	case errors.As(err, &urlErr):
		return fmt.Errorf("cannot reach the API server of context %q at %s: %w", c.Name, c.Config.Host, root(urlErr.Err))
	}
	return err
}

// root drops the layers that only repeat the address.
func root(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}
