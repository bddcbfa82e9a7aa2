package sns

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of an SNS sink.
type Options struct {
	// Topic is the topic's ARN. The name of a FIFO topic ends with .fifo.
	Topic string `yaml:"topic"`
	// Limit bounds a message with its attributes, and a request with up to ten messages. Every topic
	// accepts the default. Set more, up to 1Mi, if the topic's attribute MaximumMessageSize allows it. Default: 256Ki.
	Limit sink.Size `yaml:"limit"`
	// Timeout bounds one request, including the wait for credentials and for the answer. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// AWS selects an AWS region and account.
	AWS amazon.Access `yaml:"aws"`
	// TLS configures which certificates to trust.
	TLS sink.TLS `yaml:"tls"`
}

// Validate returns an error that names the wrong key. It does not connect.
func (o Options) Validate() error {
	if _, err := region(o.Topic); err != nil {
		return fmt.Errorf("topic: %w", err)
	}
	return amazon.Check(o.Limit, o.Timeout, o.AWS, o.TLS)
}

func (o Options) withDefaults() Options {
	o.Limit, o.Timeout = amazon.Defaults(o.Limit, o.Timeout)
	return o
}

// region returns the region of a topic's ARN: arn:aws:sns:eu-west-1:123456789012:changes.
func region(arn string) (string, error) {
	parts := strings.Split(arn, ":")
	switch {
	case arn == "":
		return "", errors.New("missing; an example is arn:aws:sns:eu-west-1:123456789012:changes")
	case len(parts) != 6 || parts[0] != "arn" || parts[2] != "sns" || parts[3] == "" || parts[4] == "" || parts[5] == "":
		return "", errors.New("not the ARN of a topic, such as arn:aws:sns:eu-west-1:123456789012:changes")
	}
	return parts[3], nil
}

// FromURL returns the options of an address for --to, such as sns:arn:aws:sns:eu-west-1:123456789012:changes. The
// query may contain keys of aws.
func FromURL(address string) (*Options, error) {
	_, rest, _ := strings.Cut(address, ":")
	arn, query, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "?")
	o := &Options{Topic: arn}
	if err := o.AWS.FromQuery(query); err != nil {
		return nil, err
	}
	return o, nil
}
