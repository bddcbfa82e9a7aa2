package devcluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"
)

//go:embed stages.yaml
var stages []byte

// startControllers starts kube-controller-manager and kube-scheduler, which retry
// until the API server answers. mu must be held.
func (c *Cluster) startControllers() error {
	if _, err := c.launch("kube-controller-manager", c.controllerManagerArgs()); err != nil {
		return err
	}
	_, err := c.launch("kube-scheduler", c.schedulerArgs())
	return err
}

// waitDefaults waits for the namespace default, which the API server creates, and
// for its service account, which the controller-manager creates. Without a
// controller-manager, waitDefaults creates the account. mu must be held.
func (c *Cluster) waitDefaults(ctx context.Context) error {
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	return c.waitAPI(ctx, "namespace default and its service account", func(ctx context.Context) error {
		if err := c.api(ctx, http.MethodGet, accounts+"/default", nil, nil); err == nil || c.opts.Controllers {
			return err
		}
		return c.create(ctx, accounts, map[string]any{"metadata": map[string]any{"name": "default"}})
	})
}

// startNodes starts kwok, creates the Nodes and waits until pods can be scheduled
// to them. mu must be held.
func (c *Cluster) startNodes(ctx context.Context) error {
	if err := writeFileAtomic(c.path("stages.yaml"), stages, 0o600); err != nil {
		return fmt.Errorf("write stages: %w", err)
	}
	if _, err := c.launch("kwok", c.kwokArgs()); err != nil {
		return err
	}
	for i := range c.opts.Nodes {
		if err := c.create(ctx, "/api/v1/nodes", fakeNode(i)); err != nil {
			return fmt.Errorf("create node: %w", err)
		}
	}
	err := c.waitAPI(ctx, "fake nodes", func(ctx context.Context) error {
		var list nodeList
		if err := c.api(ctx, http.MethodGet, "/api/v1/nodes", nil, &list); err != nil {
			return err
		}
		if n := list.schedulable(); n < c.opts.Nodes {
			return fmt.Errorf("%d of %d nodes are ready", n, c.opts.Nodes)
		}
		return nil
	})
	if err == nil {
		fmt.Fprintf(c.opts.Out, "devcluster: %d fake nodes are ready\n", c.opts.Nodes)
	}
	return err
}

// nodeList has the fields of a NodeList that schedulable reads.
type nodeList struct {
	Items []struct {
		Spec struct {
			Taints []struct {
				Key string `json:"key"`
			} `json:"taints"`
		} `json:"spec"`
		Status struct {
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

// schedulable counts the Nodes that are Ready and have no taint. A new Node has a
// taint until the controller-manager has seen it Ready.
func (l nodeList) schedulable() int {
	n := 0
	for _, node := range l.Items {
		for _, cond := range node.Status.Conditions {
			if cond.Type == "Ready" && cond.Status == "True" && len(node.Spec.Taints) == 0 {
				n++
			}
		}
	}
	return n
}

// fakeNodes selects the Nodes that kwok plays. A test may add its own Nodes.
const (
	fakeAnnotation = "kwok.x-k8s.io/node"
	fakeNodes      = fakeAnnotation + "=fake"
)

// fakeNode is the i-th Node, large enough for experiments on a laptop.
func fakeNode(i int) map[string]any {
	type m = map[string]any
	name := fmt.Sprintf("node-%d", i)
	size := m{"cpu": "32", "memory": "256Gi", "pods": "1000"}
	return m{
		"metadata": m{
			"name":        name,
			"annotations": m{fakeAnnotation: "fake"},
			"labels": m{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": runtime.GOARCH,
				"type": "kwok",
			},
		},
		"status": m{
			"allocatable": size, "capacity": size,
			"nodeInfo": m{
				"architecture": runtime.GOARCH, "operatingSystem": "linux", "kubeletVersion": KubernetesVersion,
				"bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
				"machineID": "", "osImage": "", "systemUUID": "",
			},
		},
	}
}

// create posts an object. It leaves an existing object alone.
func (c *Cluster) create(ctx context.Context, path string, object any) error {
	err := c.api(ctx, http.MethodPost, path, object, nil)
	if isStatus(err, http.StatusConflict) {
		return nil
	}
	return err
}

// waitAPI calls check until it returns nil, for at most readyLimit and only while
// all processes live. mu must be held.
func (c *Cluster) waitAPI(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not there after %v", readyLimit))
	defer cancel()
	var last error
	err := poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		for _, p := range c.procs {
			if !p.alive() {
				return false, p.exitError()
			}
		}
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("wait for %s: %w", what, errors.Join(err, last))
	}
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}
