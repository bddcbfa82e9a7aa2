package soak

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/informer"
)

// childEnv makes the test binary a program that keeps a checkpoint in that directory until it is killed or its
// standard input ends. It prints "synced" once it is.
const childEnv = "TATTLER_SOAK_CHILD"

func keep(dir string) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	cluster, err := informer.NewCluster(cfg, informer.Options{Checkpoint: dir, AuditEvery: -1})
	if err != nil {
		return err
	}
	if _, err := openStored(cluster); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		if cluster.Wait(ctx) == nil {
			fmt.Println("synced")
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent process
	}()
	return cluster.Run(ctx)
}

// killed lets a child process keep a checkpoint, runs f, and kills the child.
func (w *world) killed(ctx context.Context, t *testing.T, dir string, f func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	cmd := exec.CommandContext(ctx, must(os.Executable())(t))
	cmd.Env = append(os.Environ(), childEnv+"="+dir, "KUBECONFIG="+w.Kubeconfig())
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	stdin := must(cmd.StdinPipe())(t)
	defer stdin.Close()
	stdout := must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		f()
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	w.left = time.Now()
	if err != nil || line != "synced\n" {
		t.Fatalf("the child prints %q: %v", line, err)
	}
}
