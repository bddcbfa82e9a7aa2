// Command vulncheck runs govulncheck on modules, and fails if it finds a vulnerability that their code reaches.
//
//	vulncheck [-release] DIR…
//
// If the database of vulnerabilities cannot be reached, it says so and does nothing: a build without a network is not a
// failure. With -release, it fails then if the commit has a version tag, because nobody should publish what was not
// checked. GOVULNDB names another database, as for govulncheck.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tattler-dev/tattler/tools/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

// run checks the modules in some directories.
func run(ctx context.Context, args []string, log io.Writer) error {
	flags := flag.NewFlagSet("vulncheck", flag.ContinueOnError)
	flags.SetOutput(log)
	releasing := flags.Bool("release", false, "fail if nothing can be checked and the commit has a version tag")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dirs := flags.Args()
	if len(dirs) == 0 {
		return errors.New("name the directories of modules")
	}
	database := os.Getenv("GOVULNDB")
	if database == "" {
		database = "https://vuln.go.dev"
	}
	if err := reach(ctx, database); err != nil {
		return unchecked(ctx, dirs[0], *releasing, err, log)
	}
	tool, err := exec.CommandContext(ctx, "go", "tool", "-n", "govulncheck").Output()
	if err != nil {
		return fmt.Errorf("build govulncheck: %w", err)
	}
	for _, dir := range dirs {
		fmt.Fprintf(log, "vulncheck: %s\n", dir)
		cmd := exec.CommandContext(ctx, strings.TrimSpace(string(tool)), "-C", dir, "./...")
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("govulncheck in %s: %w", dir, err)
		}
	}
	return nil
}

// unchecked says that nothing was checked, because of an error. That is an error itself in a release of a version.
func unchecked(ctx context.Context, dir string, releasing bool, reason error, log io.Writer) error {
	if releasing {
		tag, err := release.Tag(ctx, dir)
		switch {
		case err != nil:
			return err
		case tag != "":
			return fmt.Errorf("%s cannot be released, because it was not checked for vulnerabilities: the database is not reachable: %w", tag, reason)
		}
	}
	fmt.Fprintf(log, "NOT checked for vulnerabilities: the database is not reachable: %v\n", reason)
	return nil
}

// reach asks a database for its index. A database on disk is left to govulncheck.
func reach(ctx context.Context, database string) error {
	if strings.HasPrefix(database, "file:") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, strings.TrimSuffix(database, "/")+"/index/db.json", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
