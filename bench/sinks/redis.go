package sinks

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/redis"
)

const redisProgram = "redis-server"

// openRedis runs Redis with its defaults, but without snapshots, which would occur at arbitrary times. Redis does not
// write to disk before it answers.
func openRedis(ctx context.Context, dir string, _ func(int)) (*place, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	host, port := split(address)
	d, err := begin(exec.Command(redisProgram, "--bind", host, "--port", port, "--dir", dir, "--save", ""))
	if err != nil {
		return nil, err
	}
	client := goredis.NewClient(&goredis.Options{Addr: address, MaxRetries: -1})
	if err := d.ready(ctx, func() bool { return client.Ping(ctx).Err() == nil }); err != nil {
		return nil, errors.Join(err, client.Close(), d.end())
	}
	return &place{
		sink: func() (sink.Sink, error) { return redis.New(agent, redis.Options{URL: "redis://" + address}) },
		receive: func(ctx context.Context, arrived func(int)) error {
			for last := "0"; ; {
				// The client does not end a read with its context.
				got, err := client.XRead(ctx, &goredis.XReadArgs{Streams: []string{"tattler", last}, Block: blockTime}).Result()
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case errors.Is(err, goredis.Nil):
					continue
				case err != nil:
					return fmt.Errorf("read stream: %w", err)
				}
				for _, s := range got {
					arrived(len(s.Messages))
					last = s.Messages[len(s.Messages)-1].ID
				}
			}
		},
		close: func() error { return errors.Join(client.Close(), d.end()) },
	}, nil
}
