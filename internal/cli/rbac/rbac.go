// Package rbac is the verb that prints the rights a configuration needs.
package rbac

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO    *terminal.IO
	Setup setup.Flags
	// Name is the name of the roles and bindings; Account is NAMESPACE:NAME.
	Name, Account string
	Wildcard      bool
}

const long = `Print the minimal rights that tattler run needs with the same flags or file:
roles, and bindings to a service account, as YAML for kubectl apply.

The roles name the kinds that the server has now. For a glob of a whole group of
custom resources, such as *.example.com, they name the group. For any other
glob, and if everything is watched, --wildcard also allows listing and watching
every kind, even Secrets: RBAC cannot limit a rule to kinds that appear later.

If the configuration has a web page with authentication, the command also prints
roles for viewers, without bindings.

The command reads the server's kinds with your own rights, and changes nothing.`

const examples = `  tattler rbac -c tattler.yaml | kubectl apply -f -
  tattler rbac deploy,cm -n shop --serviceaccount shop:tattler`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO, program *kinds.Program) *cobra.Command {
	o := &Options{IO: io, Setup: setup.Flags{Program: program}}
	cmd := &cobra.Command{
		Use:     "rbac [TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
		Short:   "Print the rights that a configuration needs",
		Long:    long,
		Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Setup.Types = args
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Name, "name", "tattler", "`name` of roles and bindings")
	f.StringVar(&o.Account, "serviceaccount", "tattler:tattler", "service account to bind: `NAMESPACE:NAME`")
	f.BoolVar(&o.Wildcard, "wildcard", false, "also allow kinds that appear later")
	o.Setup.AddCluster(cmd)
	o.Setup.AddWatch(cmd)
	return cmd
}

// Run prints the rights.
func Run(ctx context.Context, o *Options) error {
	namespace, account, found := strings.Cut(o.Account, ":")
	switch {
	case len(validation.IsDNS1123Subdomain(o.Name)) > 0:
		return usage.Errorf("--name: %q is not a valid role name: want lower-case letters, digits, dashes and dots", o.Name)
	case !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(account)) > 0:
		return usage.Errorf("--serviceaccount: %q is not NAMESPACE:NAME", o.Account)
	}
	o.Setup.Alone = true // the rights depend on no credential
	s, err := o.Setup.Load()
	if err != nil {
		return err
	}
	s, cluster, err := o.Setup.Only(s)
	if err != nil {
		return err
	}
	plan, err := s.Plan(ctx, cluster)
	if err != nil {
		return err
	}
	if failed := plan.Catalog.Failed(); len(failed) > 0 {
		fmt.Fprintf(o.IO.Err, "no answer from the API groups %s: their kinds are missing; try again\n", strings.Join(failed, ", "))
	}
	m := manifest{name: o.Name, namespace: namespace, account: account}
	if err := m.write(o.IO.Out, roles(plan, o.Wildcard, s.Web)); err != nil {
		return err
	}
	return m.viewers(o.IO.Out, s.Web)
}
