// Package kinds is the list of the sinks that a program has: for each its options, the addresses of --to
// that mean it, and how one is made.
package kinds

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/exec"
	"github.com/tattler-dev/tattler/internal/sink/file"
	"github.com/tattler-dev/tattler/internal/sink/kafka"
	"github.com/tattler-dev/tattler/internal/sink/log"
	"github.com/tattler-dev/tattler/internal/sink/mqtt"
	"github.com/tattler-dev/tattler/internal/sink/nats"
	"github.com/tattler-dev/tattler/internal/sink/notify"
	"github.com/tattler-dev/tattler/internal/sink/otlp"
	"github.com/tattler-dev/tattler/internal/sink/rabbitmq"
	"github.com/tattler-dev/tattler/internal/sink/redis"
	"github.com/tattler-dev/tattler/internal/sink/webhook"
)

// Program is a program that has sinks: tattler, or one that is built with more.
type Program struct {
	// Name is what it is called on the command line.
	Name  string
	Kinds []Kind
}

// Tattler is the program that has what is built in.
func Tattler() *Program { return &Program{Name: "tattler", Kinds: Builtin()} }

// Types are what the configuration needs to know of the kinds.
func (p *Program) Types() []config.SinkType {
	var types []config.SinkType
	for _, k := range p.Kinds {
		types = append(types, k.SinkType)
	}
	return types
}

// Make makes a configured sink, which neither opens a file nor connects to anybody yet.
func (p *Program) Make(s *config.Sink, env Env) (sink.Sink, error) {
	i := slices.IndexFunc(p.Kinds, func(k Kind) bool { return k.Name == s.Type })
	if i < 0 {
		return nil, fmt.Errorf("unknown type %s", s.Type)
	}
	return p.Kinds[i].make(s.Options, env)
}

// Kind is a kind of sinks; Of makes one.
type Kind struct {
	config.SinkType
	make func(o config.Options, env Env) (sink.Sink, error)
}

// Env is what a sink gets of the program that it is in.
type Env struct {
	// Agent is how the program calls itself to receivers, such as tattler/v1.2.3.
	Agent string
	// Out is stdout.
	Out io.Writer
}

// Addresses make options of an address for --to, by its scheme. An error names no credential.
type Addresses[P any] map[string]func(address string) (P, error)

// Of is a kind whose options are O.
func Of[O any, P interface {
	*O
	config.Options
}](name string, addresses Addresses[P], open func(o O, env Env) (sink.Sink, error)) Kind {
	schemes := map[string]func(string) (config.Options, error){}
	for scheme, parse := range addresses {
		schemes[scheme] = func(address string) (config.Options, error) { return parse(address) }
	}
	return Kind{
		SinkType: config.SinkType{Name: name, New: func() config.Options { return P(new(O)) }, Schemes: schemes},
		make: func(o config.Options, env Env) (sink.Sink, error) {
			return open(*(*O)(o.(P)), env) //nolint:forcetypeassert // the type made them
		},
	}
}

// placed has keys of an address's query count for the name.
func placed(k Kind, keys ...string) Kind {
	k.Place = keys
	return k
}

// Builtin are the sinks that need no program of their own.
func Builtin() []Kind {
	hook := func(address string) (*webhook.Options, error) { return &webhook.Options{URL: address}, nil }
	return []Kind{
		Of("file", Addresses[*file.Options]{
			"file": func(address string) (*file.Options, error) { return &file.Options{Path: pathOf(address)}, nil },
		}, newFile),
		Of("webhook", Addresses[*webhook.Options]{"http": hook, "https": hook},
			func(o webhook.Options, env Env) (sink.Sink, error) { return webhook.New(env.Agent, o) }),
		Of("log", Addresses[*log.Options]{
			"log": func(string) (*log.Options, error) { return &log.Options{}, nil },
		}, func(o log.Options, env Env) (sink.Sink, error) { return log.New(env.Out, "stdout", o) }),
		newNotify(),
		placed(Of("exec", Addresses[*exec.Options]{"exec": exec.FromURL},
			func(o exec.Options, _ Env) (sink.Sink, error) { return exec.New(o) }), "arg"),
		placed(Of("nats", Addresses[*nats.Options]{"nats": nats.FromURL, "tls": nats.FromURL, "ws": nats.FromURL, "wss": nats.FromURL},
			func(o nats.Options, env Env) (sink.Sink, error) { return nats.New(env.Agent, o) }), "stream"),
		Of("kafka", Addresses[*kafka.Options]{"kafka": kafka.FromURL},
			func(o kafka.Options, env Env) (sink.Sink, error) { return kafka.New(env.Agent, o) }),
		placed(Of("rabbitmq", Addresses[*rabbitmq.Options]{"amqp": rabbitmq.FromURL, "amqps": rabbitmq.FromURL},
			func(o rabbitmq.Options, env Env) (sink.Sink, error) { return rabbitmq.New(env.Agent, o) }),
			"exchange", "key", "queue"),
		placed(Of("redis", Addresses[*redis.Options]{"redis": redis.FromURL, "rediss": redis.FromURL},
			func(o redis.Options, env Env) (sink.Sink, error) { return redis.New(env.Agent, o) }), "stream"),
		Of("mqtt", Addresses[*mqtt.Options]{"mqtt": mqtt.FromURL, "mqtts": mqtt.FromURL},
			func(o mqtt.Options, env Env) (sink.Sink, error) { return mqtt.New(env.Agent, o) }),
		Of("otlp", Addresses[*otlp.Options]{
			"otlp": otlp.FromURL, "otlps": otlp.FromURL, "otlp+http": otlp.FromURL, "otlp+https": otlp.FromURL,
		}, func(o otlp.Options, env Env) (sink.Sink, error) { return otlp.New(env.Agent, o) }),
	}
}

// newNotify is the kind whose addresses are credentials. Of the web's it claims those of the chat services.
func newNotify() Kind {
	addresses := Addresses[*notify.Options]{"http": notify.FromURL, "https": notify.FromURL}
	for _, scheme := range notify.Schemes() {
		addresses[scheme] = notify.FromURL
	}
	k := Of("notify", addresses, func(o notify.Options, env Env) (sink.Sink, error) { return notify.New(env.Agent, o) })
	k.New = func() config.Options { return &notify.Options{Window: notify.DefaultWindow} }
	k.Takes, k.Secret, k.Identity = notify.Takes, true, notify.Identity
	return k
}

func newFile(o file.Options, _ Env) (sink.Sink, error) {
	if _, err := os.Stat(filepath.Dir(o.Path)); err != nil {
		return nil, fmt.Errorf("look at its folder, which must exist: %w", err)
	}
	return file.New(o)
}

// pathOf is that of file:PATH or file:///PATH.
func pathOf(address string) string {
	p := strings.TrimPrefix(address, "file:")
	if rest, found := strings.CutPrefix(p, "//"); found && strings.HasPrefix(rest, "/") {
		return rest
	}
	return p
}
