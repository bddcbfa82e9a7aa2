package redis

import (
	"errors"
	"fmt"
	"net"
	"slices"

	client "github.com/redis/go-redis/v9"
)

// hints say what to do about the server's errors, by how they begin behind "ERR ".
var hints = []struct{ word, hint string }{
	{"NOAUTH", "the server wants a password: see url"},
	{"WRONGPASS", "user or password are wrong, or the user is off: see url"},
	{"AUTH", "the server knows no password, or no such user: see url"},
	{"NOPERM", "the user's rights are to have XADD, MULTI, EXEC (WAIT for replicas, SELECT for a database other than 0), and the stream's key"},
	{"WRONGTYPE", "a key of the stream's name is there that is no stream: delete it, or change stream"},
	{"OOM", "the server has used up maxmemory: see maxLen, and its maxmemory-policy"},
	{"READONLY", "this is a replica: url is to be the master's"},
	{"MASTERDOWN", "a replica that has lost its master"},
	{"LOADING", "the server has just started"},
	{"MISCONF", "the server cannot write to its disk: see its log"},
	{"NOREPLICAS", "the server lacks the replicas of its min-replicas-to-write"},
	{"MOVED", "this is a cluster, which the sink does not follow: a stream needs a server of its own, or a proxy"},
	{"CROSSSLOT", "this is a cluster, which the sink does not follow: a stream needs a server of its own, or a proxy"},
	{"CLUSTERDOWN", "this is a cluster, which the sink does not follow: a stream needs a server of its own, or a proxy"},
	{"invalid DB", "the server has not so many databases: see url"},
	{"DB index", "the server has not so many databases: see url"},
}

// refused is about what the client returns: the server's error, or that of the connection. All of them pass.
func (s *Sink) refused(err error) error {
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

// mayNotAsk tells whether an error is about CONFIG: services that run Redis rename it, or forbid it.
func mayNotAsk(err error) bool {
	return slices.ContainsFunc([]string{"NOPERM", "unknown command", "unknown subcommand"}, func(word string) bool {
		return client.HasErrorPrefix(err, word)
	})
}
