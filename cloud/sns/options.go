package sns

import (
	"cmp"
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
	switch {
	case o.Limit != 0 && (o.Limit < amazon.LowestLimit || o.Limit > amazon.HighestLimit):
		return errors.New("limit: from 8Ki to 1Mi")
	case o.Timeout < 0:
		return errors.New("timeout: not negative")
	}
	if err := o.AWS.Validate(); err != nil {
		return fmt.Errorf("aws: %w", err)
	}
	if err := o.TLS.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Limit = cmp.Or(o.Limit, amazon.DefaultLimit)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
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
	for key, values := range keys {
		if len(values) != 1 || !o.AWS.Set(key, values[0]) {
			return nil, fmt.Errorf("%q in the query: there may be one each of %s", key, amazon.QueryKeys)
		}
	}
	return o, nil
}
