package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	client "github.com/redis/go-redis/v9"
)

// hints say what to do about a server's error, by its first word after "ERR ".
var hints = []struct{ word, hint string }{
	{"NOAUTH", "the server wants a password: see url"},
	{"WRONGPASS", "the user or the password is wrong, or the user is disabled: see url"},
	{"AUTH", "the server has no password set, or no such user: see url"},
	{"NOPERM", "the user needs the rights to XADD, MULTI, EXEC (WAIT for replicas, SELECT for a database other than 0), and to the stream's key"},
	{"WRONGTYPE", "a key with the stream's name is not a stream: delete it, or change stream"},
	{"OOM", "the server has used up maxmemory: see maxLen, and its maxmemory-policy"},
	{"READONLY", "this is a replica: url must name the master"},
	{"MASTERDOWN", "a replica that has lost its master"},
	{"LOADING", "the server has just started"},
	{"MISCONF", "the server cannot write to its disk: see its log"},
	{"NOREPLICAS", "the server lacks the replicas of its min-replicas-to-write"},
	{"MOVED", "this is a cluster, which the sink does not support: use a single server, or a proxy"},
	{"CROSSSLOT", "this is a cluster, which the sink does not support: use a single server, or a proxy"},
	{"CLUSTERDOWN", "this is a cluster, which the sink does not support: use a single server, or a proxy"},
	{"invalid DB", "the server does not have that many databases: see url"},
	{"DB index", "the server does not have that many databases: see url"},
}

// refused describes an error of the server or of the connection. All of them are temporary.
func (s *Sink) refused(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return s.failed(fmt.Errorf("%w before there was an answer", context.Cause(ctx)))
	}
	var timeout net.Error
	for _, h := range hints {
		if client.HasErrorPrefix(err, h.word) {
			return s.failed(fmt.Errorf("%w (%s)", err, h.hint))
		}
	}
	if errors.As(err, &timeout) && timeout.Timeout() {
		return s.failed(fmt.Errorf("no answer within %s (timeout): %w", s.o.Timeout, err))
	}
	return s.failed(err)
}

// configForbidden reports whether an error is about CONFIG, which services that run Redis rename or forbid.
func configForbidden(err error) bool {
	return slices.ContainsFunc([]string{"NOPERM", "unknown command", "unknown subcommand"}, func(word string) bool {
		return client.HasErrorPrefix(err, word)
	})
}
