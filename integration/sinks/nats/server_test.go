package nats_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience bounds what the test's own client waits for.
const patience = time.Minute

// envServer is the environment variable of a NATS server process: its configuration.
const envServer = "TATTLER_NATS_TEST_SERVER"

// serve runs a NATS server until its stdin ends or it is killed.
func serve(path string) error {
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		return err
	}
	o.NoLog, o.NoSigs = true, true
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		return fmt.Errorf("the server does not begin")
	}
	fmt.Println(s.ClientURL(), s.WebsocketURL())
	_, err = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	return err
}

// broker is a NATS server in a separate process. It keeps its data when it is killed.
type broker struct {
	config string // a file
	addr   string // host:port of the running process
	ws     string
	// started, if set, is called with the address of each process.
	started func(addr string)
	cmd     *exec.Cmd
	stdin   io.Closer
}

// newBroker runs a server with some extra lines of configuration.
func newBroker(t *testing.T, more string) *broker {
	t.Helper()
	dir := t.TempDir()
	b := &broker{config: filepath.Join(dir, "nats.conf")}
	text := fmt.Sprintf("listen: 127.0.0.1:-1\nserver_name: test\njetstream: {store_dir: %q}\n%s\n", filepath.Join(dir, "data"), more)
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start(t)
	t.Cleanup(func() { b.kill(t) })
	return b
}

func (b *broker) start(t *testing.T) {
	t.Helper()
	if b.cmd != nil {
		return
	}
	cmd := exec.CommandContext(context.Background(), os.Args[0]) // killed by the cleanup
	cmd.Env = append(os.Environ(), envServer+"="+b.config, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.cmd, b.stdin = cmd, stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the server does not begin: %v", err)
	}
	client, ws, _ := strings.Cut(strings.TrimSpace(line), " ")
	_, b.addr, _ = strings.Cut(client, "://")
	_, b.ws, _ = strings.Cut(ws, "://")
	if b.started != nil {
		b.started(b.addr)
	}
}

// kill kills the server with SIGKILL.
func (b *broker) kill(t *testing.T) {
	t.Helper()
	if b.cmd == nil {
		return
	}
	if err := b.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = b.cmd.Wait() // the error is that it was killed
	b.stdin.Close()
	b.cmd = nil
}

// admin returns the test's own connection.
func (b *broker) admin(t *testing.T, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect("nats://"+b.addr, append(options, nats.NoReconnect(), nats.Timeout(patience))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// stored returns the messages of a stream, in its order.
func stored(t *testing.T, js jetstream.JetStream, stream string) []*jetstream.RawStreamMsg {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	state := s.CachedInfo().State
	var out []*jetstream.RawStreamMsg
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}
