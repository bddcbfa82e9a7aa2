package devcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// clusterName is the name of the cluster and of the context in every kubeconfig.
const clusterName = "tattler-dev"

// AdminUser is the user of [Cluster.Kubeconfig]. Its group, system:masters, may do
// everything.
const AdminUser = "tattler-dev-admin"

// UserKubeconfig writes a kubeconfig for an ordinary user with a name and groups,
// and returns its path in the cluster's folder (mode 0600). RBAC applies to the
// user and at first grants next to nothing. It may be called at any time, also
// while the API server is down, and again for the same name.
func (c *Cluster) UserKubeconfig(name string, groups ...string) (string, error) {
	if name == "" {
		return "", errors.New("write kubeconfig: a user needs a name")
	}
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, name)
	path := filepath.Join(c.dir, "users", fmt.Sprintf("%s-%x.kubeconfig", safe, hash(name)))
	return path, c.writeKubeconfig(path, name, groups...)
}

// writeKubeconfig issues a certificate for a user and writes a kubeconfig to path.
// The file is JSON, which is valid YAML.
func (c *Cluster) writeKubeconfig(path, user string, groups ...string) error {
	pair, err := c.pki.client(user, groups)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(c.CAFile())
	if err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	type m map[string]any
	config := m{
		"apiVersion": "v1", "kind": "Config", "current-context": clusterName,
		"clusters": []m{{"name": clusterName, "cluster": m{"server": c.URL(), "certificate-authority-data": ca}}},
		"users":    []m{{"name": user, "user": m{"client-certificate-data": pair.cert, "client-key-data": pair.key}}},
		"contexts": []m{{"name": clusterName, "context": m{"cluster": clusterName, "user": user}}},
	}
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make folder of kubeconfig: %w", err)
	}
	if err := writeFileAtomic(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
