package sqs

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of an SQS sink.
type Options struct {
	// Queue is the queue's URL, as the console and GetQueueUrl show it. The name of a FIFO queue ends with .fifo.
	Queue string `yaml:"queue"`
	// Limit bounds a message with its attributes, and a request with up to ten messages. Every queue
	// accepts the default. Set more, up to 1Mi, if the queue's attribute MaximumMessageSize allows it. Default: 256Ki.
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
	if _, err := parse(o.Queue); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	return amazon.Check(o.Limit, o.Timeout, o.AWS, o.TLS)
}

func (o Options) withDefaults() Options {
	o.Limit, o.Timeout = amazon.Defaults(o.Limit, o.Timeout)
	return o
}

// parse parses a queue's URL.
func parse(queue string) (*url.URL, error) {
	u, err := url.Parse(queue)
	switch {
	case queue == "":
		return nil, errors.New("missing; an example is https://sqs.eu-west-1.amazonaws.com/123456789012/changes")
	case err != nil:
		return nil, errors.New("not a URL")
	case u.User != nil:
		return nil, errors.New("must not contain a user; credentials come from AWS's usual places (see aws)")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, errors.New("must begin with https:// or http:// and a host")
	case strings.Trim(u.Path, "/") == "" || strings.HasSuffix(u.Path, "/"):
		return nil, errors.New("must end with the queue's account and name")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("must be a host and a path only")
	}
	return u, nil
}

// Hosts of queues: public, legacy, and VPC endpoints.
var (
	public = regexp.MustCompile(`^sqs\.([a-z0-9-]+)\.(amazonaws\.com|amazonaws\.com\.cn)$`)
	legacy = regexp.MustCompile(`^([a-z0-9-]+)\.queue\.(amazonaws\.com|amazonaws\.com\.cn)$`)
	vpce   = regexp.MustCompile(`\.sqs\.([a-z0-9-]+)\.vpce\.amazonaws\.com$`)
)

// where returns the region in a queue's host, and the endpoint if it is not the region's public one, which the SDK
// knows.
func where(u *url.URL) (region, endpoint string) {
	for _, known := range []*regexp.Regexp{public, legacy} {
		if m := known.FindStringSubmatch(u.Host); m != nil {
			return m[1], ""
		}
	}
	if m := vpce.FindStringSubmatch(u.Hostname()); m != nil {
		region = m[1]
	}
	return region, u.Scheme + "://" + u.Host
}

// FromURL returns the options of an address for --to, such as sqs://sqs.eu-west-1.amazonaws.com/123456789012/changes.
// The query may contain keys of aws.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, errors.New("want sqs://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE")
	}
	o := &Options{}
	if err := o.AWS.FromQuery(u.RawQuery); err != nil {
		return nil, err
	}
	u.Scheme, u.RawQuery = "https", ""
	o.Queue = u.String()
	return o, nil
}
