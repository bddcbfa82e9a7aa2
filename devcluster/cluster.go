package devcluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Options configure a cluster. The zero value is etcd and an API server in a new
// temporary folder, which suits most tests.
type Options struct {
	// Dir holds certificates, etcd's data, logs and kubeconfigs. It is created if
	// need be, and remains. A cluster that ended continues from its Dir, on other
	// ports. "" is a new temporary folder, which Stop removes.
	Dir string

	// Controllers adds kube-controller-manager and kube-scheduler. Without them
	// nothing is garbage-collected, scheduled or expanded, which suits bulk data;
	// the aggregated cluster roles (view, edit, admin) are empty; a deleted
	// namespace remains; and Pods can be created only in the namespace default,
	// because other namespaces lack the service account that admission requires.
	Controllers bool

	// Nodes, if more than 0, adds the controllers, and kwok with that many fake
	// Nodes ("node-0", …), on which Pods become Running and Ready.
	Nodes int

	// Out receives progress: builds and starts. It may be nil.
	Out io.Writer

	// APIServerArgs are appended to the API server's flags. A repeated flag replaces
	// the earlier one.
	APIServerArgs []string
}

// Cluster is a running control plane. All methods may be called concurrently.
// Those that start or stop a program wait for each other.
type Cluster struct {
	opts       Options
	dir        string // absolute
	removeDir  bool
	detached   bool
	onStart    func(*process) error // called after each start, with mu held
	bin        Binaries
	pki        *pki
	token      string
	http       *http.Client
	etcdName   string
	servingKey string

	servingCert                     string
	etcdPort, etcdPeerPort, apiPort int

	mu      sync.Mutex
	procs   map[string]*process // by program
	stopped bool
}

// Bounds of a start: ample for a loaded machine, and finite.
const (
	readyLimit = 5 * time.Minute // for each component
	dirMode    = 0o700
)

// Start builds the missing programs, see [EnsureBinaries], starts the control plane
// and returns when it is usable: /readyz is ok, the namespace default and its
// service account exist, and the Nodes are Ready.
//
// ctx bounds the start only: the caller must call Stop, also after ctx has ended.
// If Start fails, it leaves no process. Each step may take five minutes; the error
// names the component and contains the last lines of its log.
//
// On Linux all processes die with the one that called Start, even if that is
// killed; a temporary folder then remains.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	return start(ctx, o, false, nil)
}

func start(ctx context.Context, o Options, detached bool, onStart func(*process) error) (*Cluster, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	o.Controllers = o.Controllers || o.Nodes > 0
	c := &Cluster{opts: o, detached: detached, onStart: onStart, procs: map[string]*process{}, etcdName: rand.Text()}
	names := []string{"etcd", "kube-apiserver", "kubectl"}
	if o.Controllers {
		names = append(names, "kube-controller-manager", "kube-scheduler")
	}
	if o.Nodes > 0 {
		names = append(names, "kwok")
	}
	var err error
	if c.bin, err = EnsureBinaries(ctx, o.Out, names...); err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	if err := c.up(ctx); err != nil {
		return nil, fmt.Errorf("start cluster: %w", errors.Join(err, c.Stop()))
	}
	return c, nil
}

// up does the work of Start after the build. If it fails, Stop cleans up.
func (c *Cluster) up(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := withFreePorts(2, func(ports []int) error {
		c.etcdPort, c.etcdPeerPort = ports[0], ports[1]
		return c.startEtcd(ctx)
	}); err != nil {
		return err
	}
	if err := withFreePorts(1, func(ports []int) error {
		c.apiPort = ports[0]
		return c.startAPIServer(ctx)
	}); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(); err != nil {
		return err
	}
	if c.opts.Controllers {
		if err := c.startControllers(); err != nil {
			return err
		}
	}
	if err := c.waitDefaults(ctx); err != nil {
		return err
	}
	if c.opts.Nodes > 0 {
		return c.startNodes(ctx)
	}
	return nil
}

// prepare creates the folder, the certificates and the admin's token.
func (c *Cluster) prepare() error {
	var err error
	if c.opts.Dir == "" {
		c.dir, err = os.MkdirTemp("", "tattler-devcluster-")
		c.removeDir = true
	} else if c.dir, err = filepath.Abs(c.opts.Dir); err == nil {
		err = os.MkdirAll(c.dir, dirMode)
	}
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if c.pki, err = openPKI(c.path("pki")); err != nil {
		return err
	}
	if c.servingCert, c.servingKey, err = c.pki.server(); err != nil {
		return err
	}
	c.token = rand.Text()
	tokens := fmt.Sprintf("%s,%s,%s,\"system:masters\"\n", c.token, AdminUser, AdminUser)
	if err := writeFileAtomic(c.path("pki", "tokens.csv"), []byte(tokens), 0o600); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	c.http, err = newAPIClient(c.CAFile())
	return err
}

// writeKubeconfigs writes the kubeconfigs of the admin and of the components.
func (c *Cluster) writeKubeconfigs() error {
	for path, user := range map[string][]string{ // name, groups
		c.Kubeconfig(): {AdminUser, "system:masters"},
		c.path("pki", "kube-controller-manager.kubeconfig"): {"system:kube-controller-manager"},
		c.path("pki", "kube-scheduler.kubeconfig"):          {"system:kube-scheduler"},
		c.path("pki", "kwok.kubeconfig"):                    {"kwok", "system:masters"},
	} {
		if err := c.writeKubeconfig(path, user[0], user[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends every process (SIGTERM, and SIGKILL after some seconds), waits until
// they have ended, and removes a temporary folder. It may be called again. The
// cluster cannot be used afterwards.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	// The clients end first, then the API server, then etcd. None of them has work
	// that is worth waiting for.
	var errs []error
	for _, name := range []string{"kwok", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"} {
		errs = append(errs, c.procs[name].stop(context.Background()))
	}
	if c.removeDir && c.dir != "" {
		if err := os.RemoveAll(c.dir); err != nil {
			errs = append(errs, fmt.Errorf("remove folder: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Dir is the cluster's folder, absolute. Logs are in logs/<program>.log below it.
func (c *Cluster) Dir() string { return c.dir }

// Kubeconfig is the path of the admin's kubeconfig (0600). Its context and its
// cluster are named tattler-dev.
func (c *Cluster) Kubeconfig() string { return c.path("kubeconfig") }

// URL is the API server's URL, https://127.0.0.1:port. It does not change.
func (c *Cluster) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", c.apiPort) }

// EtcdURL is etcd's URL, http://127.0.0.1:port. It does not change.
func (c *Cluster) EtcdURL() string { return fmt.Sprintf("http://127.0.0.1:%d", c.etcdPort) }

// CAFile is the PEM file of the authority that signed the API server's certificate.
func (c *Cluster) CAFile() string { return c.pki.caFile() }

// AdminToken is a bearer token that authenticates the admin.
func (c *Cluster) AdminToken() string { return c.token }

// Binaries are the programs that the cluster runs, and kubectl.
func (c *Cluster) Binaries() Binaries { return c.bin }

// PID is the process id of a program of this cluster, such as "kube-apiserver", or
// 0 if it does not run.
func (c *Cluster) PID(program string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.procs[program]; p.alive() {
		return p.pid
	}
	return 0
}

// Kubectl runs this cluster's kubectl as the admin and returns its standard
// output. The error contains its standard error. It reads and writes none of the
// user's files.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.bin.Path("kubectl"), args...)
	home := c.path("home")
	if err := os.MkdirAll(home, dirMode); err != nil {
		return "", fmt.Errorf("run kubectl: %w", err)
	}
	cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + c.Kubeconfig(), "PATH=/usr/bin:/bin"}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		detail := ""
		if ee, ok := errors.AsType[*exec.ExitError](err); ok {
			detail = ": " + lastLines(string(ee.Stderr), 20)
		}
		return string(out), fmt.Errorf("run kubectl %q: %w%s", args, err, detail)
	}
	return string(out), nil
}

// path joins names to the cluster's folder.
func (c *Cluster) path(names ...string) string {
	return filepath.Join(append([]string{c.dir}, names...)...)
}

// hash distinguishes names that map to the same file name.
func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}
