package rabbitmq_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
)

// program is RabbitMQ's own script: the one in the PATH must be run by the user rabbitmq.
const program = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// server is a RabbitMQ node of this process.
type server struct {
	dir        string
	certs      rig.Certificates
	plain, tls string // addresses
	log        string
	cmd        *exec.Cmd
	exited     chan error
	epmd       *exec.Cmd
}

// start runs a node with its own name, folder, cookie and epmd. It talks to no other node.
func start(certs rig.Certificates) (*server, error) {
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("the real RabbitMQ is needed (Debian's rabbitmq-server; `make integration` installs it): %w", err)
	}
	dir, err := os.MkdirTemp("", "tattler-rabbitmq-")
	if err != nil {
		return nil, err
	}
	var ports [4]int
	for i := range ports {
		if ports[i], err = rig.FreePort(); err != nil {
			return nil, err
		}
	}
	s := &server{
		dir: dir, certs: certs, plain: fmt.Sprint("127.0.0.1:", ports[0]), tls: fmt.Sprint("127.0.0.1:", ports[1]), log: filepath.Join(dir, "out.log"),
	}
	conf := fmt.Sprintf(`listeners.tcp.1 = %s
listeners.ssl.1 = %s
ssl_options.cacertfile = %s
ssl_options.certfile = %s
ssl_options.keyfile = %s
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
max_message_size = 100000
log.console = true
log.file = false
vm_memory_high_watermark.absolute = 4GB
disk_free_limit.absolute = 1MB
`, s.plain, s.tls, certs.CA, certs.Server, certs.ServerKey)
	if err := os.WriteFile(filepath.Join(dir, "rabbitmq.conf"), []byte(conf), 0o600); err != nil {
		return nil, err
	}
	out, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s.cmd = exec.Command(program)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Env = append(os.Environ(), s.env(ports[2])...)
	s.cmd.Env = append(s.cmd.Env, "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		fmt.Sprint("ERL_EPMD_PORT=", ports[3]), "ERL_EPMD_ADDRESS=127.0.0.1")
	if err := s.startEPMD(ports[3]); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		s.endEPMD()
		return nil, err
	}
	s.exited = make(chan error, 1)
	go func() { s.exited <- s.cmd.Wait() }()
	if err := s.wait(); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// startEPMD runs the daemon that finds nodes, in the foreground. Otherwise each node and each rabbitmqctl would
// start one that is never stopped.
func (s *server) startEPMD(port int) error {
	s.epmd = exec.Command("epmd", "-port", fmt.Sprint(port), "-address", "127.0.0.1")
	if err := s.epmd.Start(); err != nil {
		return err
	}
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			tick.Stop()
			return c.Close()
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.endEPMD()
			return fmt.Errorf("epmd does not listen: %w", err)
		}
	}
}

func (s *server) endEPMD() {
	_ = s.epmd.Process.Kill()
	_ = s.epmd.Wait()
}

func (s *server) env(distribution int) []string {
	return []string{
		"HOME=" + s.dir, // the folder of the cookie
		fmt.Sprintf("RABBITMQ_NODENAME=tattler-%d@localhost", os.Getpid()),
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(s.dir, "rabbitmq.conf"),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(s.dir, "mnesia"),
		"RABBITMQ_LOG_BASE=" + s.dir,
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(s.dir, "enabled_plugins"),
		"RABBITMQ_GENERATED_CONFIG_DIR=" + filepath.Join(s.dir, "generated"),
		fmt.Sprint("RABBITMQ_DIST_PORT=", distribution),
		"NOTIFY_SOCKET=",
	}
}

// wait returns when the server accepts connections.
func (s *server) wait() error {
	deadline := time.After(5 * time.Minute)
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		text, err := os.ReadFile(s.log)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("Server startup complete")) {
			tick.Stop()
			return nil
		}
		select {
		case err := <-s.exited:
			s.exited <- err
			return fmt.Errorf("RabbitMQ ended: %w\n%s", err, text)
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("RabbitMQ did not start:\n%s", text)
		}
	}
}

// end kills all processes of the node.
func (s *server) end() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.exited
	s.endEPMD()
	// Erlang's helper process leaves the group, and ends when the node does.
	_ = os.RemoveAll(s.dir)
}

// connect opens a channel that is closed at the end of the test.
func (s *server) connect(t *testing.T) *amqp.Channel {
	t.Helper()
	c, err := amqp.Dial("amqp://guest:guest@" + s.plain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// queue declares a durable queue that is deleted at the end of the test.
func (s *server) queue(t *testing.T, args amqp.Table) (*amqp.Channel, string) {
	t.Helper()
	ch := s.connect(t)
	name := strings.NewReplacer("/", "-", "#", "-").Replace(t.Name()) + fmt.Sprint("-", time.Now().UnixNano())
	if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := ch.QueueDelete(name, false, false, false); err != nil {
			t.Error(err)
		}
	})
	return ch, name
}

// ctl runs rabbitmqctl on the node.
func (s *server) ctl(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/lib/rabbitmq/bin/rabbitmqctl", args...)
	cmd.Env = s.cmd.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("rabbitmqctl %s: %v\n%s", args, err, out)
	}
}
