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

// Options are the keys of an SQS sink.
type Options struct {
	// Queue is the queue's URL, as the console and GetQueueUrl show it. The name of a FIFO queue ends with
	// .fifo.
	Queue string `yaml:"queue"`
	// Limit is how long a message may be with its attributes, and one request with up to ten of them (256Ki,
	// which every queue takes; at most 1Mi, which is the newer limit, and that of the queue's attribute
	// MaximumMessageSize).
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
	if _, err := parse(o.Queue); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	return amazon.Check(o.Limit, o.Timeout, o.AWS, o.TLS)
}

func (o Options) withDefaults() Options {
	o.Limit, o.Timeout = amazon.Defaults(o.Limit, o.Timeout)
	return o
}

// parse reads a queue's URL.
func parse(queue string) (*url.URL, error) {
	u, err := url.Parse(queue)
	switch {
	case queue == "":
		return nil, errors.New("the sink needs a queue's URL, such as https://sqs.eu-west-1.amazonaws.com/123456789012/changes")
	case err != nil:
		return nil, errors.New("not a URL")
	case u.User != nil:
		return nil, errors.New("holds a user; credentials come from AWS's own places (see aws)")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, errors.New("must begin with https:// or http:// and a host")
	case strings.Trim(u.Path, "/") == "" || strings.HasSuffix(u.Path, "/"):
		return nil, errors.New("must end with the queue's account and name")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("has more than a host and a path")
	}
	return u, nil
}

// Hosts of queues.
var (
	public = regexp.MustCompile(`^sqs\.([a-z0-9-]+)\.(amazonaws\.com|amazonaws\.com\.cn)$`)
	legacy = regexp.MustCompile(`^([a-z0-9-]+)\.queue\.(amazonaws\.com|amazonaws\.com\.cn)$`)
	vpce   = regexp.MustCompile(`\.sqs\.([a-z0-9-]+)\.vpce\.amazonaws\.com$`)
)

// where is what a queue's host tells: its region, and the endpoint to ask where it is not the region's
// public one, which the SDK knows.
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

// FromURL reads an address such as sqs://sqs.eu-west-1.amazonaws.com/123456789012/changes, whose query may
// have some of the keys of aws.
func FromURL(address string) (*Options, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, errors.New("want sqs://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE")
	}
	o := &Options{}
	if err := o.AWS.FromQuery(u.Query()); err != nil {
		return nil, err
	}
	u.Scheme, u.RawQuery = "https", ""
	o.Queue = u.String()
	return o, nil
}
