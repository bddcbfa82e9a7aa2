// Package sinks measures delivery: a pump from a store in memory to each kind of sink that can run on this machine,
// with its receiver on the same machine.
//
// A broker that is written in Go runs in the measuring process and competes for its processors. Redis, RabbitMQ and
// the program of an exec sink are separate processes. The receivers are real, except for Kafka's: kfake, which
// keeps everything in memory. There is no peer: batches are compared with one change at a time.
package sinks

import (
	"os"
	"os/exec"
	"slices"

	"github.com/tattler-dev/tattler/bench/harness"
)

// Kind is a measured kind of sink.
type Kind struct {
	// Name names the sink and its receiver: "kafka (kfake, a fake)".
	Name string
	// Job is the job that measures it.
	Job string
	// Needs is the program that the measurement requires; it may be empty.
	Needs string

	open opener
}

// Kinds returns all kinds.
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

// Missing reports whether this machine lacks the program that the kind needs.
func (k Kind) Missing() bool {
	if k.Needs == "" {
		return false
	}
	_, err := exec.LookPath(k.Needs)
	return err != nil
}

// Jobs are the measurements of this package. The sample of a kind whose program is missing is empty.
func Jobs() []harness.Job {
	var all []harness.Job
	for _, k := range Kinds() {
		all = append(all, harness.Job{Name: k.Job, Run: k.measure})
	}
	return all
}

// temporary creates a folder for the kind in the round's folder.
func temporary(in harness.Input) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp(in.Dir, "sink-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// percentile returns a percentile of values, which it sorts.
func percentile(values []float64, percent int) float64 {
	slices.Sort(values)
	return values[len(values)*percent/100]
}
