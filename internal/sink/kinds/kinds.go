// Package kinds lists the sinks that a program has: the options of each, its addresses for --to, and its
// constructor.
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

// Program is a program with sinks: tattler, or one that is built with more of them.
type Program struct {
	// Name is the program's name on the command line.
	Name  string
	Kinds []Kind
}

// Tattler returns the program with the built-in sinks.
func Tattler() *Program { return &Program{Name: "tattler", Kinds: Builtin()} }

// Types returns the part of the kinds that the configuration needs.
func (p *Program) Types() []config.SinkType {
	var types []config.SinkType
	for _, k := range p.Kinds {
		types = append(types, k.SinkType)
	}
	return types
}

// Make creates a configured sink. The sink opens files and connects later.
func (p *Program) Make(s *config.Sink, env Env) (sink.Sink, error) {
	i := slices.IndexFunc(p.Kinds, func(k Kind) bool { return k.Name == s.Type })
	if i < 0 {
		return nil, fmt.Errorf("unknown type %s", s.Type)
	}
	return p.Kinds[i].make(s.Options, env)
}

// Kind is a kind of sink; create one with Of.
type Kind struct {
	config.SinkType
	make func(o config.Options, env Env) (sink.Sink, error)
}

// Env is the program's part of a sink.
type Env struct {
	// Agent is the program's name towards receivers, such as tattler/v1.2.3.
	Agent string
	// Out is stdout.
	Out io.Writer
}

// Addresses maps a scheme of --to to a function that parses such an address. Its errors contain no credential.
type Addresses[P any] map[string]func(address string) (P, error)

// Of returns a kind with options of type O.
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
			return open(*(*O)(o.(P)), env) //nolint:forcetypeassert // New made them
		},
	}
}

// withPlaceKeys makes keys of an address's query part of the sink's name.
func withPlaceKeys(k Kind, keys ...string) Kind {
	k.Place = keys
	return k
}

// Builtin returns the sinks that are part of every program.
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
		withPlaceKeys(Of("exec", Addresses[*exec.Options]{"exec": exec.FromURL},
			func(o exec.Options, _ Env) (sink.Sink, error) { return exec.New(o) }), "arg"),
		withPlaceKeys(Of("nats", Addresses[*nats.Options]{"nats": nats.FromURL, "tls": nats.FromURL, "ws": nats.FromURL, "wss": nats.FromURL},
			func(o nats.Options, env Env) (sink.Sink, error) { return nats.New(env.Agent, o) }), "stream"),
		Of("kafka", Addresses[*kafka.Options]{"kafka": kafka.FromURL},
			func(o kafka.Options, env Env) (sink.Sink, error) { return kafka.New(env.Agent, o) }),
		withPlaceKeys(Of("rabbitmq", Addresses[*rabbitmq.Options]{"amqp": rabbitmq.FromURL, "amqps": rabbitmq.FromURL},
			func(o rabbitmq.Options, env Env) (sink.Sink, error) { return rabbitmq.New(env.Agent, o) }),
			"exchange", "key", "queue"),
		withPlaceKeys(Of("redis", Addresses[*redis.Options]{"redis": redis.FromURL, "rediss": redis.FromURL},
			func(o redis.Options, env Env) (sink.Sink, error) { return redis.New(env.Agent, o) }), "stream"),
		Of("mqtt", Addresses[*mqtt.Options]{"mqtt": mqtt.FromURL, "mqtts": mqtt.FromURL},
			func(o mqtt.Options, env Env) (sink.Sink, error) { return mqtt.New(env.Agent, o) }),
		Of("otlp", Addresses[*otlp.Options]{
			"otlp": otlp.FromURL, "otlps": otlp.FromURL, "otlp+http": otlp.FromURL, "otlp+https": otlp.FromURL,
		}, func(o otlp.Options, env Env) (sink.Sink, error) { return otlp.New(env.Agent, o) }),
	}
}

// newNotify returns the kind notify. Its addresses are credentials; it also claims the chat services' https URLs.
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
		return nil, fmt.Errorf("check the file's directory, which must exist: %w", err)
	}
	return file.New(o)
}

// pathOf returns PATH of file:PATH or file:///PATH.
func pathOf(address string) string {
	p := strings.TrimPrefix(address, "file:")
	if rest, found := strings.CutPrefix(p, "//"); found && strings.HasPrefix(rest, "/") {
		return rest
	}
	return p
}
