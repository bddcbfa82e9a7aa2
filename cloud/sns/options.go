package sns

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the keys of an SNS sink.
type Options struct {
	// Topic is the topic's ARN. The name of a FIFO topic ends with .fifo.
	Topic string `yaml:"topic"`
	// Limit is how long a message may be with its attributes, and one request with up to ten of them (256Ki,
	// which every topic takes; at most 1Mi, where the topic's attribute MaximumMessageSize says so).
	Limit sink.Size `yaml:"limit"`
	// Timeout bounds one request, its answer and the credentials for it included (10 seconds).
	Timeout time.Duration `yaml:"timeout"`
	// AWS says which AWS is meant, and as whom.
	AWS amazon.Access `yaml:"aws"`
	// TLS says whom to trust.
	TLS sink.TLS `yaml:"tls"`
}

// Validate says what is wrong with the options, naming the key; it talks to nobody.
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

// region is that of a topic's ARN: arn:aws:sns:eu-west-1:123456789012:changes.
func region(arn string) (string, error) {
	parts := strings.Split(arn, ":")
	switch {
	case arn == "":
		return "", errors.New("the sink needs a topic's ARN, such as arn:aws:sns:eu-west-1:123456789012:changes")
	case len(parts) != 6 || parts[0] != "arn" || parts[2] != "sns" || parts[3] == "" || parts[4] == "" || parts[5] == "":
		return "", errors.New("not the ARN of a topic, such as arn:aws:sns:eu-west-1:123456789012:changes")
	}
	return parts[3], nil
}

// FromURL reads an address such as sns:arn:aws:sns:eu-west-1:123456789012:changes, whose query may have some
// of the keys of aws.
func FromURL(address string) (*Options, error) {
	_, rest, _ := strings.Cut(address, ":")
	arn, query, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "?")
	o := &Options{Topic: arn}
	keys, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("the query is not KEY=VALUE&…")
	}
	if err := o.AWS.FromQuery(keys); err != nil {
		return nil, err
	}
	return o, nil
}
