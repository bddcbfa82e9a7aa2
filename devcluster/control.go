package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
)

// ErrStopped is the error of methods that start a part of a stopped cluster.
var ErrStopped = errors.New("cluster is stopped")

// StopAPIServer ends the API server as an orderly restart does (SIGTERM): that
// takes a second and ends watches without an error. After half a minute, or when ctx
// ends, it kills the API server. It returns nil if the API server does not run.
func (c *Cluster) StopAPIServer(ctx context.Context) error { return c.stopOne(ctx, "kube-apiserver") }

// KillAPIServer ends the API server with SIGKILL. Connections break without notice.
func (c *Cluster) KillAPIServer() error { return c.killOne("kube-apiserver") }

// FreezeAPIServer suspends the API server (SIGSTOP): its connections stay open and
// silent. A frozen API server can be killed, but not stopped.
func (c *Cluster) FreezeAPIServer() error { return c.signalAPIServer(syscall.SIGSTOP) }

// ThawAPIServer resumes a frozen API server.
func (c *Cluster) ThawAPIServer() error { return c.signalAPIServer(syscall.SIGCONT) }

func (c *Cluster) signalAPIServer(s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.procs["kube-apiserver"]
	if !p.alive() {
		return fmt.Errorf("%v for kube-apiserver: it does not run", s)
	}
	return signalGroup(p.pid, s)
}

// StartAPIServer starts the API server again, with the same port, and returns when
// it is ready. etcd must be running, and the API server must not.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.startAPIServer(ctx)
}

// StopEtcd ends etcd (SIGTERM), as StopAPIServer ends the API server. It takes some
// seven seconds. The API server keeps running, not ready, and responds with errors
// until etcd is back.
func (c *Cluster) StopEtcd(ctx context.Context) error { return c.stopOne(ctx, "etcd") }

// KillEtcd ends etcd with SIGKILL. Acknowledged writes survive, although etcd does
// not sync to disk: the kernel has them.
func (c *Cluster) KillEtcd() error { return c.killOne("etcd") }

// StartEtcd starts etcd again, with the same ports and data. It returns when etcd
// answers and the API server, if it runs, is ready again. etcd must not be running.
func (c *Cluster) StartEtcd(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	p := c.procs["kube-apiserver"]
	if !p.alive() {
		return nil
	}
	if err := p.waitReady(ctx, readyLimit, c.readyz); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	return nil
}

// readyz asks the API server whether it is ready.
func (c *Cluster) readyz(ctx context.Context) error {
	return c.api(ctx, http.MethodGet, "/readyz", nil, nil)
}

// Compact removes from etcd all but the current versions of objects. The API
// server keeps recent versions in its watch cache, so it refuses a watch from an
// older version (410) only after it was restarted.
func (c *Cluster) Compact(ctx context.Context) error {
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	// Any read returns the current revision. The gateway expects base64 keys and
	// quoted 64-bit numbers.
	if err := c.etcd(ctx, "/v3/kv/range", map[string]any{"key": "AA==", "count_only": true}, &answer); err != nil {
		return fmt.Errorf("compact etcd: read revision: %w", err)
	}
	err := c.etcd(ctx, "/v3/kv/compaction", map[string]any{"revision": answer.Header.Revision, "physical": true}, nil)
	if err != nil && !strings.Contains(err.Error(), "has been compacted") {
		return fmt.Errorf("compact etcd to revision %s: %w", answer.Header.Revision, err)
	}
	return nil
}

func (c *Cluster) stopOne(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.procs[name].stop(ctx)
}

func (c *Cluster) killOne(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.procs[name].kill()
}

// launch starts a program. mu must be held.
func (c *Cluster) launch(name string, args []string) (*process, error) {
	if c.stopped {
		return nil, fmt.Errorf("start %s: %w", name, ErrStopped)
	}
	if c.procs[name].alive() {
		return nil, fmt.Errorf("start %s: it runs already", name)
	}
	p, err := startComponent(name, c.bin.Path(name), args, c.path("logs", name+".log"), c.path("home"), c.detached)
	if err != nil {
		return nil, err
	}
	c.procs[name] = p
	if c.onStart != nil {
		return p, c.onStart(p)
	}
	return p, nil
}

// startEtcd starts etcd and waits until the member with our name answers. If it
// does not, startEtcd kills it. mu must be held.
func (c *Cluster) startEtcd(ctx context.Context) error {
	p, err := c.launch("etcd", c.etcdArgs())
	if err != nil {
		return err
	}
	err = p.waitReady(ctx, readyLimit, func(ctx context.Context) error {
		var list struct {
			Members []struct {
				Name string `json:"name"`
			} `json:"members"`
		}
		if err := c.etcd(ctx, "/v3/cluster/member/list", map[string]any{"linearizable": true}, &list); err != nil {
			return err
		}
		if len(list.Members) != 1 || list.Members[0].Name != c.etcdName {
			return fmt.Errorf("find etcd member %s: %v answered", c.etcdName, list.Members)
		}
		return nil
	})
	return c.ready(p, err)
}

// startAPIServer starts the API server and waits until it is ready. If it does not
// become ready, startAPIServer kills it. mu must be held.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	p, err := c.launch("kube-apiserver", c.apiServerArgs())
	if err != nil {
		return err
	}
	return c.ready(p, p.waitReady(ctx, readyLimit, c.readyz))
}

// ready reports that p is ready, or kills p and returns err.
func (c *Cluster) ready(p *process, err error) error {
	if err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", p.name, err), p.kill())
	}
	fmt.Fprintf(c.opts.Out, "devcluster: %s is ready (process %d)\n", p.name, p.pid)
	return nil
}
