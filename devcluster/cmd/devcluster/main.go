// Command devcluster runs a real Kubernetes control plane in the background, for
// trying things out. See package devcluster.
//
//	devcluster up [--dir DIR]      start it, unless it runs, and print how to use it
//	devcluster down [--dir DIR]    end it and remove DIR
//	devcluster status [--dir DIR]  list its processes; exit status 1 unless all of them run
//	devcluster build               only build its programs
//
// DIR is .devcluster in the current folder by default. Your own kubeconfig is
// neither read nor written.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tattler-dev/tattler/devcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = "usage: devcluster up|down|status [--dir DIR]\n       devcluster build"

// run runs the command and returns the exit status: 0, 1 for a failure, 2 for an
// invalid command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, usage)
		return 2
	}
	verb := args[0]
	flags := flag.NewFlagSet("devcluster "+verb, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprintln(stderr, usage) }
	dir := ".devcluster"
	if verb != "build" {
		flags.StringVar(&dir, "dir", dir, "folder of the cluster")
	}
	if err := flags.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || flags.NArg() > 0 {
		fmt.Fprintln(stderr, usage)
		return 2
	}
	var err error
	switch verb {
	case "up":
		err = up(ctx, dir, stdout, stderr)
	case "down":
		err = devcluster.Down(ctx, dir, stderr)
	case "status":
		var whole bool
		if whole, err = devcluster.Status(dir, stdout); err == nil && !whole {
			return 1
		}
	case "build":
		var b devcluster.Binaries
		if b, err = devcluster.EnsureBinaries(ctx, stderr); err == nil {
			fmt.Fprintln(stdout, b.Dir())
		}
	case "help", "-h", "--help":
		fmt.Fprintln(stdout, usage)
	default:
		fmt.Fprintf(stderr, "devcluster: unknown command %q\n%s\n", verb, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintf(stderr, "devcluster: %v\n", err)
		return 1
	}
	return 0
}

func up(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	b, err := devcluster.Up(ctx, dir, stderr)
	if err != nil {
		return err
	}
	word := "A cluster is running"
	if b.Already {
		word = "A cluster is already running"
	}
	down := "make cluster-down"
	if filepath.Base(b.Dir) != ".devcluster" {
		down = "devcluster down --dir " + quote(b.Dir)
	}
	fmt.Fprintf(stdout, `%s: Kubernetes %s at %s, with fake nodes.
Its kubeconfig is %s; your own is untouched.

  export KUBECONFIG=%s
  alias kubectl=%s    # or use yours
  kubectl create deployment web --image=nginx --replicas=3
  kubectl get pods --watch

End it with: %s
`, word, devcluster.KubernetesVersion, b.URL, b.Kubeconfig, quote(b.Kubeconfig), quote(b.Kubectl), down)
	return nil
}

// quote quotes a path for a shell, if need be.
func quote(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+@%=:,", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
