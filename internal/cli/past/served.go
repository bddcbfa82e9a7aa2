package past

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/incluster"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Served is a journal that a daemon serves.
type Served interface {
	history.Source
	// URL names the daemon.
	URL() string
	// Recording reports whether it records now. Status is its state.
	Recording(ctx context.Context) bool
	Status(ctx context.Context) (control.Status, error)
}

// anyDaemon is the value of --in-cluster without one; help shows it. No Service has this name.
const anyDaemon = "NAMESPACE/NAME"

// service is the value of --in-cluster. Its type has no name, so that help shows the optional value alone.
type service string

func (s *service) String() string { return string(*s) }

func (s *service) Set(text string) error {
	*s = service(text)
	return nil
}

func (s *service) Type() string { return "" }

// daemonFlags select a daemon in the cluster.
type daemonFlags struct {
	service     service
	ca, account string
	sendToken   bool
}

// AddServed declares the flags of Add, and those for a daemon in the cluster, for commands that use Open or Status.
func (f *Flags) AddServed(cmd *cobra.Command) {
	f.Add(cmd)
	fs := cmd.Flags()
	fs.Var(&f.daemon.service, "in-cluster", "read from the daemon behind this Service in the cluster; without a value, from the only daemon there")
	fs.Lookup("in-cluster").NoOptDefVal = anyDaemon
	fs.StringVar(&f.daemon.ca, "daemon-ca", "", "`file` with the daemon's CA certificate; default: the ConfigMap NAME-ca")
	complete.Files(cmd, "daemon-ca")
	fs.StringVar(&f.daemon.account, "daemon-account", "", "see what the ServiceAccount `NAMESPACE/NAME` may see")
	fs.BoolVar(&f.daemon.sendToken, "send-token", false, "send your token to the daemon, which can then act as you")
}

// serving opens a served journal; nil if the flags select a file.
func (f *Flags) serving(ctx context.Context) (Served, error) {
	if f.Serving != nil {
		return f.Serving(ctx)
	}
	d := f.daemon
	switch {
	case d.service == "" && (d.ca != "" || d.account != "" || d.sendToken):
		return nil, usage.Errorf("--daemon-ca, --daemon-account and --send-token need --in-cluster")
	case d.service == "":
		return nil, nil
	case f.Path != "" || f.Config != "":
		return nil, usage.Errorf("--in-cluster excludes --journal and --config")
	case d.service == anyDaemon:
		d.service = ""
	}
	cluster, err := f.Kube.Load()
	if err != nil {
		return nil, err
	}
	j, err := incluster.Open(ctx, incluster.Options{
		Config: cluster.Config, Service: string(d.service), Account: d.account, SendToken: d.sendToken, CA: d.ca,
	})
	if err != nil {
		return nil, err
	}
	return j, nil
}

// Status returns the state of the daemon that writes the journal.
func (f *Flags) Status(ctx context.Context) (control.Status, error) {
	s, err := f.serving(ctx)
	if err != nil {
		return control.Status{}, err
	}
	if s != nil {
		status, err := s.Status(ctx)
		return status, errors.Join(err, s.Close())
	}
	path, err := f.File(ctx)
	if err != nil {
		return control.Status{}, err
	}
	return (&control.Client{Journal: path}).Status(ctx)
}
