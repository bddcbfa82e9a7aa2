package pubsub

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of a Pub/Sub sink.
type Options struct {
	// Topic is the topic's full name: projects/PROJECT/topics/TOPIC.
	Topic string `yaml:"topic"`
	// Unordered sends messages without ordering keys. One request may then contain changes of several objects, and a
	// subscription may deliver the changes of one object in any order.
	Unordered bool `yaml:"unordered"`
	// Parallel is the number of objects whose changes are published concurrently, at most 64. A request contains
	// changes of only one object, because it has one ordering key. This key has no effect with unordered. Default: 16.
	Parallel int `yaml:"parallel"`
	// CredentialsFile is a JSON file from Google: a service account's key or a workload identity's configuration.
	// Default: the file in GOOGLE_APPLICATION_CREDENTIALS, gcloud's credentials, or the machine's account.
	CredentialsFile string `yaml:"credentialsFile"`
	// Endpoint is the host and port of a region's server, such as europe-west1-pubsub.googleapis.com:443: Pub/Sub keeps
	// the order of messages that are published in one region. Default: the nearest server.
	Endpoint string `yaml:"endpoint"`
	// Emulator is the host and port of Google's emulator, or of another server without TLS and credentials.
	// Default: PUBSUB_EMULATOR_HOST, or none.
	Emulator string `yaml:"emulator"`
	// Timeout bounds one request, including its answer. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
}

const maxParallel = 64

// topicName matches Pub/Sub's names of topics, including the project.
var topicName = regexp.MustCompile(`^projects/[a-z0-9.:-]+/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

// Validate returns an error that names the wrong key. It does not connect.
func (o Options) Validate() error {
	switch {
	case o.Topic == "":
		return errors.New("topic: missing; an example is projects/my-project/topics/changes")
	case !topicName.MatchString(o.Topic):
		return fmt.Errorf("topic: %q is not projects/PROJECT/topics/TOPIC", o.Topic)
	case o.Parallel < 0 || o.Parallel > maxParallel:
		return fmt.Errorf("parallel: must be between 1 and %d", maxParallel)
	case o.Timeout < 0:
		return errors.New("timeout: must not be negative")
	case o.Emulator != "" && (o.Endpoint != "" || o.CredentialsFile != ""):
		return errors.New("emulator: excludes endpoint and credentialsFile")
	}
	for key, address := range map[string]string{"endpoint": o.Endpoint, "emulator": o.Emulator} {
		if address == "" {
			continue
		}
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" || strings.Contains(address, "/") {
			return fmt.Errorf("%s: %q is not HOST:PORT", key, address)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Parallel = cmp.Or(o.Parallel, 16)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Emulator = cmp.Or(o.Emulator, os.Getenv("PUBSUB_EMULATOR_HOST"))
	return o
}

// FromURL returns the options of an address for --to, such as gcppubsub://projects/my-project/topics/changes. The
// query may contain credentialsFile, emulator, endpoint and unordered.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, errors.New("want gcppubsub://projects/PROJECT/topics/TOPIC")
	}
	o := &Options{Topic: u.Host + u.Path}
	err = sink.Query{
		"credentialsFile": sink.Text(&o.CredentialsFile), "emulator": sink.Text(&o.Emulator), "endpoint": sink.Text(&o.Endpoint),
		"unordered": sink.Bool(&o.Unordered),
	}.Decode(u.RawQuery, "")
	if err != nil {
		return nil, err
	}
	return o, nil
}
