package sinks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/rabbitmq"
)

// rabbitProgram is RabbitMQ's script. Debian's wrapper in the PATH must run as the user rabbitmq.
const rabbitProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// queue is durable: a confirmed message is on disk.
const queue = "changes"

// openRabbitMQ runs an isolated node with a separate name, folder, cookie and epmd. The epmd runs in the foreground:
// otherwise RabbitMQ's script would start one that outlives the node.
func openRabbitMQ(ctx context.Context, dir string, _ func(int)) (*place, error) {
	var address [3]string // of clients, of other nodes, and of the epmd
	for i := range address {
		var err error
		if address[i], err = freeAddress(); err != nil {
			return nil, err
		}
	}
	cmd, err := rabbitCommand(dir, address)
	if err != nil {
		return nil, err
	}
	_, port := split(address[2])
	epmd, err := begin(exec.Command("epmd", "-port", port, "-address", "127.0.0.1"))
	if err != nil {
		return nil, err
	}
	listens := func() bool {
		c, err := net.Dial("tcp", address[2])
		return err == nil && c.Close() == nil
	}
	if err := epmd.ready(ctx, listens); err != nil {
		return nil, errors.Join(err, epmd.end())
	}
	d, err := begin(cmd)
	if err != nil {
		return nil, errors.Join(err, epmd.end())
	}
	url := "amqp://guest:guest@" + address[0]
	var conn *amqp.Connection
	err = d.ready(ctx, func() bool {
		var err error
		conn, err = amqp.Dial(url)
		return err == nil
	})
	if err != nil {
		return nil, errors.Join(err, d.end(), epmd.end())
	}
	end := func() error { return errors.Join(conn.Close(), d.end(), epmd.end()) }
	ch, err := conn.Channel()
	if err == nil {
		_, err = ch.QueueDeclare(queue, true, false, false, false, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make queue: %w", err), end())
	}
	return &place{
		sink: func() (sink.Sink, error) { return rabbitmq.New(agent, rabbitmq.Options{URL: url, Queue: queue}) },
		receive: func(ctx context.Context, arrived func(int)) error {
			got, err := ch.ConsumeWithContext(ctx, queue, "", true, false, false, false, nil)
			if err != nil {
				return fmt.Errorf("consume: %w", err)
			}
			for range got { // it ends with ctx
				arrived(1)
			}
			return ctx.Err()
		},
		close: end,
	}, nil
}

func rabbitCommand(dir string, address [3]string) (*exec.Cmd, error) {
	_, distribution := split(address[1])
	_, epmd := split(address[2])
	config := filepath.Join(dir, "rabbitmq.conf")
	text := fmt.Sprintf("listeners.tcp.1 = %s\nlog.console = true\nlog.file = false\ndisk_free_limit.absolute = 1MB\n", address[0])
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(rabbitProgram)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"HOME="+dir, // the folder of the cookie
		fmt.Sprintf("RABBITMQ_NODENAME=tattler-bench-%d@localhost", os.Getpid()),
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_CONFIG_FILE="+config,
		"RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE="+dir,
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(dir, "enabled_plugins"),
		"RABBITMQ_GENERATED_CONFIG_DIR="+filepath.Join(dir, "generated"),
		"RABBITMQ_DIST_PORT="+distribution,
		"NOTIFY_SOCKET=",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-start_epmd false -erl_epmd_port "+distribution+" -kernel inet_dist_use_interface {127,0,0,1}",
		"ERL_EPMD_PORT="+epmd)
	return cmd, nil
}
