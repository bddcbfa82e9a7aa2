package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// backgroundNodes is how many fake Nodes a cluster in the background has.
const backgroundNodes = 2

// Background describes a cluster that runs without a parent.
type Background struct {
	Dir        string `json:"dir"`        // absolute
	URL        string `json:"url"`        // of the API server
	Kubeconfig string `json:"kubeconfig"` // path of the admin's kubeconfig
	Kubectl    string `json:"kubectl"`    // path of the program

	// Already is true if Up found the cluster running.
	Already bool `json:"-"`
}

// Up starts a whole cluster with two fake Nodes in dir and returns when it is
// usable. The cluster outlives this process. If one already runs in dir, Up returns
// it. If only a part of it still runs, Up ends that part and starts the cluster
// again, with its objects.
//
// If Up fails or ctx ends, it leaves no process; dir, with the logs, stays. dir must
// be empty, not exist, or be from an earlier Up. out receives progress.
//
// Up is for programs that end soon afterwards: it leaves a goroutine for each
// process of the cluster, which waits for its end.
func Up(ctx context.Context, dir string, out io.Writer) (Background, error) {
	dir, unlock, err := claim(ctx, dir, out)
	if err != nil {
		return Background{}, fmt.Errorf("start cluster: %w", err)
	}
	defer unlock()
	s, err := readState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		s, err = state{}, nil
	}
	if err != nil {
		return Background{}, fmt.Errorf("start cluster: %w", err)
	}
	if s.whole() {
		s.Background.Already = true
		return s.Background, nil
	}
	if len(s.Processes) > 0 {
		fmt.Fprintf(out, "devcluster: the cluster in %s is not whole; starting it again\n", dir)
	}
	if err := s.end(ctx); err != nil {
		return Background{}, fmt.Errorf("start cluster: end the remaining processes: %w", err)
	}
	// The state is written before the first process starts and after each start, so
	// that Down can end them, however this process ends.
	fmt.Fprintf(out, "devcluster: starting a cluster in %s\n", dir)
	s = state{}
	if err := s.write(dir); err != nil {
		return Background{}, fmt.Errorf("start cluster: %w", err)
	}
	c, err := start(ctx, Options{Dir: dir, Nodes: backgroundNodes, Out: out}, true, func(p *process) error {
		s.add(p)
		return s.write(dir)
	})
	if err != nil {
		return Background{}, err
	}
	s.Background = Background{Dir: dir, URL: c.URL(), Kubeconfig: c.Kubeconfig(), Kubectl: c.bin.Path("kubectl")}
	if err := errors.Join(s.write(dir), context.Cause(ctx)); err != nil {
		return Background{}, fmt.Errorf("start cluster: %w", errors.Join(err, c.Stop()))
	}
	return s.Background, nil
}

// Down ends every process of the cluster that Up started in dir, waits until they
// have ended, and removes dir. Without a dir it does nothing. It does not touch a
// folder that Up did not create, or a process that has reused a pid.
func Down(ctx context.Context, dir string, out io.Writer) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(out, "devcluster: no cluster in %s\n", dir)
		return nil
	}
	dir, unlock, err := claim(ctx, dir, out)
	if err != nil {
		return fmt.Errorf("stop cluster: %w", err)
	}
	defer unlock()
	s, err := readState(dir)
	if errors.Is(err, fs.ErrNotExist) { // claim saw that it is empty
		s, err = state{}, nil
	}
	if err != nil {
		return fmt.Errorf("stop cluster: %w", err)
	}
	if err := s.end(ctx); err != nil {
		return fmt.Errorf("stop cluster: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove folder of cluster: %w", err)
	}
	fmt.Fprintf(out, "devcluster: stopped; removed %s\n", dir)
	return nil
}

// Status writes the processes of the cluster in dir to out and reports whether all
// of them run.
func Status(dir string, out io.Writer) (bool, error) {
	s, err := readState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(out, "no cluster in %s\n", dir)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, p := range s.Processes {
		word := "ended"
		if p.alive() {
			word = "runs"
		}
		fmt.Fprintf(out, "%-24s %-6s process %d, log %s\n", p.Name, word, p.PID, filepath.Join(dir, "logs", p.Name+".log"))
	}
	if !s.whole() {
		fmt.Fprintln(out, "the cluster is not whole")
		return false, nil
	}
	fmt.Fprintf(out, "the API server is at %s\n", s.Background.URL)
	return true, nil
}

// lockName is the lock in a cluster's folder.
const lockName = ".lock"

// claim creates dir if need be, locks it, and checks that it is a cluster's or
// empty. It returns the absolute path.
func claim(ctx context.Context, dir string, out io.Writer) (string, func(), error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, fmt.Errorf("find folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("read folder: %w", err)
	}
	// Down removes a folder without a state, too, so it may contain only the files
	// that an Up leaves when it is killed early.
	foreign := slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() != lockName && e.Name() != stateName+partSuffix
	}) && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == stateName })
	if foreign {
		return "", nil, fmt.Errorf("use folder %s: it is not empty and not a cluster's; choose another", dir)
	}
	unlock, err := lockFile(ctx, filepath.Join(dir, lockName), func() {
		fmt.Fprintf(out, "devcluster: another command works on %s; waiting for it\n", dir)
	})
	return dir, unlock, err
}

// end ends the processes that still run, the API server and etcd last, and waits
// until they have ended.
func (s state) end(ctx context.Context) error {
	var errs []error
	for i := len(s.Processes) - 1; i >= 0; i-- {
		errs = append(errs, s.Processes[i].end(ctx))
	}
	return errors.Join(errs...)
}

// end sends SIGTERM, and SIGKILL after stopGrace or when ctx ends, and waits for
// the end.
func (p processState) end(ctx context.Context) error {
	for _, attempt := range []struct {
		signal syscall.Signal
		ctx    context.Context
	}{{syscall.SIGTERM, ctx}, {syscall.SIGKILL, context.Background()}} {
		if !p.alive() {
			return nil
		}
		if err := signalGroup(p.PID, attempt.signal); err != nil {
			return fmt.Errorf("end %s: %w", p.Name, err)
		}
		wait, cancel := context.WithTimeout(attempt.ctx, stopGrace)
		err := poll(wait, 20*time.Millisecond, func(context.Context) (bool, error) { return !p.alive(), nil })
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("end %s: process %d is still there %v after SIGKILL", p.Name, p.PID, stopGrace)
}
