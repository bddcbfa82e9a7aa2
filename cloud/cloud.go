// Package cloud has the sinks for the buses of cloud providers. It is in a separate module because it needs the
// providers' SDKs.
package cloud

import (
	"github.com/tattler-dev/tattler/cloud/pubsub"
	"github.com/tattler-dev/tattler/cloud/servicebus"
	"github.com/tattler-dev/tattler/cloud/sns"
	"github.com/tattler-dev/tattler/cloud/sqs"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// Kinds returns the sinks of this module.
func Kinds() []kinds.Kind {
	return []kinds.Kind{
		kinds.Of("sqs", kinds.Addresses[*sqs.Options]{"sqs": sqs.FromURL},
			func(o sqs.Options, env kinds.Env) (sink.Sink, error) { return sqs.New(env.Agent, o) }),
		kinds.Of("sns", kinds.Addresses[*sns.Options]{"sns": sns.FromURL},
			func(o sns.Options, env kinds.Env) (sink.Sink, error) { return sns.New(env.Agent, o) }),
		kinds.Of("pubsub", kinds.Addresses[*pubsub.Options]{"gcppubsub": pubsub.FromURL},
			func(o pubsub.Options, env kinds.Env) (sink.Sink, error) { return pubsub.New(env.Agent, o) }),
		kinds.Of("servicebus", kinds.Addresses[*servicebus.Options]{"azureservicebus": servicebus.FromURL},
			func(o servicebus.Options, env kinds.Env) (sink.Sink, error) { return servicebus.New(env.Agent, o) }),
	}
}

// Program returns tattler with the sinks of this module.
func Program() *kinds.Program {
	return &kinds.Program{Name: "tattler-cloud", Kinds: append(kinds.Builtin(), Kinds()...)}
}
