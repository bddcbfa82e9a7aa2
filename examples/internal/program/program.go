// Package program has the common parts of the examples: the user's kubeconfig, an end by SIGTERM, and one-line errors that
// say what to do.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Main parses the command line and calls run with the cluster that the user's kubeconfig names or, in a pod, with the
// one that the pod is in. SIGTERM and ^C end the context; a second one ends the process. Where run fails, Main prints
// why and exits with 1, or with 2 for a UsageError.
func Main(run func(ctx context.Context, cfg *rest.Config) error) {
	name := filepath.Base(os.Args[0])
	if flag.Lookup("kubeconfig") == nil { // controller-runtime defines it as well
		flag.String("kubeconfig", "", "`file` that names the cluster; else $KUBECONFIG, ~/.kube/config, or the cluster of the pod")
	}
	wrong := parse(name)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := func() error {
		if wrong != nil {
			return wrong
		}
		cfg, err := config(flag.Lookup("kubeconfig").Value.String())
		if err != nil {
			return err
		}
		return run(ctx, cfg)
	}()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, explain(err))
		var usage *UsageError
		if errors.As(err, &usage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// parse reads the command line. Its error does not include the list of all flags, which would hide the problem.
func parse(name string) error {
	flags := flag.CommandLine
	flags.Init(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	err := flags.Parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(os.Stdout)
		flags.Usage()
		os.Exit(0)
	case err != nil:
		return Usage("%v; --help lists the flags", err)
	case flags.NArg() > 0:
		return Usage("unexpected argument %q; --help lists the flags", flags.Arg(0))
	}
	return nil
}

// UsageError is an error in the command line.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

// Usage makes a UsageError.
func Usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

func config(file string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if named := os.Getenv("KUBECONFIG"); clientcmd.IsEmptyConfig(err) && file == "" && named != "" {
		return nil, fmt.Errorf("no cluster is named: KUBECONFIG is %q, which does not exist or is empty; `make cluster` starts a cluster and writes .devcluster/kubeconfig", named)
	}
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster is named: set KUBECONFIG or --kubeconfig to a kubeconfig file; `make cluster` starts a cluster and writes .devcluster/kubeconfig")
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return cfg, nil
}

// explain returns an error in one line, with advice where there is some.
func explain(err error) string {
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
	switch {
	case apierrors.IsForbidden(err):
		return text + " (manifest.yaml has the rights that this program needs)"
	case apierrors.IsUnauthorized(err):
		return text + " (the API server does not accept the credentials of the kubeconfig)"
	}
	return text
}

// Serve serves HTTP until ctx ends; requests in flight then have five seconds.
func Serve(ctx context.Context, listener net.Listener, server *http.Server) error {
	server.ReadHeaderTimeout, server.ReadTimeout, server.WriteTimeout = 5*time.Second, 30*time.Second, 30*time.Second
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		ended <- server.Shutdown(limited)
	})
	defer stop()
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
