// Package sinks measures what delivers: a pump from a store in memory to each kind of sink that can run here, whose
// receiver is on this machine.
//
// A broker that is written in Go runs in the measuring process, and takes its processors; Redis, RabbitMQ and
// the program of an exec sink are processes of their own. The receiver is real, but for Kafka's: kfake, which
// keeps everything in memory. There is no peer: batches are compared with one change at a time.
package sinks

import (
	"os"
	"os/exec"
	"slices"

	"github.com/tattler-dev/tattler/bench/harness"
)

// Kind is a kind of sink that is measured.
type Kind struct {
	// Name is the sink's, and what receives: "kafka (kfake, a fake)".
	Name string
	// Job measures it.
	Job string
	// Needs is the program that it cannot be measured without; empty for none.
	Needs string

	open opener
}

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		{Name: "file", Job: "sinks/file", open: openFile},
		{Name: "webhook", Job: "sinks/webhook", open: openWebhook},
		{Name: "exec of tee", Job: "sinks/exec", Needs: "tee", open: openExec},
		{Name: "nats", Job: "sinks/nats", open: openNATS},
		{Name: "kafka (kfake, a fake)", Job: "sinks/kafka", open: openKafka},
		{Name: "rabbitmq", Job: "sinks/rabbitmq", Needs: rabbitProgram, open: openRabbitMQ},
		{Name: "redis", Job: "sinks/redis", Needs: redisProgram, open: openRedis},
		{Name: "mqtt", Job: "sinks/mqtt", open: openMQTT},
		{Name: "otlp over gRPC", Job: "sinks/otlp", open: openOTLP},
	}
}

// Missing tells whether the machine lacks the program that the kind needs.
func (k Kind) Missing() bool {
	if k.Needs == "" {
		return false
	}
	_, err := exec.LookPath(k.Needs)
	return err != nil
}

// Jobs are what can be measured. The sample of one whose program is missing is empty.
func Jobs() []harness.Job {
	var all []harness.Job
	for _, k := range Kinds() {
		all = append(all, harness.Job{Name: k.Job, Run: k.measure})
	}
	return all
}

// temporary makes a folder of the kind's own, below that of the round.
func temporary(in harness.Input) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp(in.Dir, "sink-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// percentile is that of some values, which it sorts.
func percentile(values []float64, percent int) float64 {
	slices.Sort(values)
	return values[len(values)*percent/100]
}
