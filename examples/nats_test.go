package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// envNATS makes this program a NATS server: its value is the configuration file.
const envNATS = "TATTLER_EXAMPLES_NATS"

// serveNATS is a NATS server, until its stdin ends or it is killed.
func serveNATS(file string) error {
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		return err
	}
	o.NoLog, o.NoSigs = true, true
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(patience) {
		return errors.New("the server does not listen")
	}
	fmt.Println(s.ClientURL())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// broker is a NATS server in a process of its own, which keeps its streams when it is killed. Its clients reach it by a line,
// since a neighbour may take the port of a server that was killed.
type broker struct {
	dir, url string
	address  atomic.Pointer[string]
	cmd      *exec.Cmd
	stdin    io.Closer
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{dir: t.TempDir()}
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	b.url = "nats://" + newLineTo(t, func() string { return *b.address.Load() }).listener.Addr().String()
	t.Cleanup(func() { b.kill(t) })
	return b
}

// again starts a server that was killed.
func (b *broker) again(t *testing.T) {
	t.Helper()
	eventually(t, b.start)
}

func (b *broker) start() error {
	config := filepath.Join(b.dir, "nats.conf")
	text := fmt.Sprintf("listen: \"127.0.0.1:-1\"\nserver_name: test\njetstream: {store_dir: %q}\n", filepath.Join(b.dir, "data"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), os.Args[0]) // ended by kill
	cmd.Env = append(os.Environ(), envNATS+"="+config, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		return errors.Join(fmt.Errorf("the NATS server does not begin: %w", err), cmd.Wait())
	}
	b.cmd, b.stdin = cmd, stdin
	address := strings.TrimPrefix(strings.TrimSpace(line), "nats://")
	b.address.Store(&address)
	return nil
}

// kill is kill -9.
func (b *broker) kill(t *testing.T) {
	t.Helper()
	if b.cmd == nil {
		return
	}
	if err := b.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = b.cmd.Wait() // it says that it was killed
	b.stdin.Close()
	b.cmd = nil
}

// published is a message that change-bus has published.
type published struct {
	Op, Kind, Key, ResourceVersion string
	Old, New                       map[string]any

	subject, id string
}

// stored are the messages of a stream that are about a namespace, in their order; none of a stream that is not there.
func (b *broker) stored(t *testing.T, stream, namespace string) ([]published, error) {
	t.Helper()
	nc, err := nats.Connect(b.url, nats.NoReconnect())
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	var all []published
	state := s.CachedInfo().State
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err != nil {
			return nil, err
		}
		p := published{subject: m.Subject, id: m.Header.Get(jetstream.MsgIDHeader)}
		if err := json.Unmarshal(m.Data, &p); err != nil {
			return nil, err
		}
		if strings.HasPrefix(p.Key, namespace+"/") {
			all = append(all, p)
		}
	}
	return all, nil
}
