package redis_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// server is the test's own redis-server: on a free loopback port, in a folder of the test, with each write synced
// before its answer.
type server struct {
	t       *testing.T
	dir     string
	port    string
	options []string
	admin   *client.Client
	cmd     *exec.Cmd // nil while it is down
}

func newServer(t *testing.T, options ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("there is no redis-server here: `make integration` installs it (Debian's package redis-server)")
	}
	s := &server{t: t, dir: t.TempDir(), port: freePort(t), options: options}
	s.admin = client.NewClient(&client.Options{
		Addr: s.addr(), Protocol: 2, DisableIdentity: true, DialerRetries: 1, MaxRetries: -1,
		DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute, // each write waits for the disk
	})
	t.Cleanup(func() {
		s.kill()
		s.admin.Close()
	})
	s.start()
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(rig.Must(rig.FreePort())(t))
}

func (s *server) addr() string { return "127.0.0.1:" + s.port }

func (s *server) start() {
	s.t.Helper()
	if s.cmd != nil {
		return
	}
	log := filepath.Join(s.dir, "log")
	args := append([]string{
		"--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir, "--logfile", log, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
		"--daemonize", "no", "--enable-debug-command", "yes",
	}, s.options...)
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	sinktest.Until(s.t, func() error {
		conn, err := net.Dial("tcp", s.addr()) // the client would keep trying in a goroutine
		if err == nil {
			conn.Close()
			err = s.admin.Ping(context.Background()).Err()
		}
		if text, _ := os.ReadFile(log); err != nil {
			err = fmt.Errorf("%w; its log: %s", err, text)
		}
		return err
	})
}

// kill kills the server with SIGKILL.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()         // the error is that it was killed
	s.cmd = nil
}

// do executes a command on the server.
func (s *server) do(command string) {
	s.t.Helper()
	var args []any
	for _, word := range strings.Fields(command) {
		args = append(args, word)
	}
	if err := s.admin.Do(context.Background(), args...).Err(); err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
}

// entries returns the entries of a stream.
func (s *server) entries(stream string) []client.XMessage {
	s.t.Helper()
	out, err := s.admin.XRange(context.Background(), stream, "-", "+").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}
