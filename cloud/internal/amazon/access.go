// Package amazon is what the sinks for Amazon's SNS and SQS share: the way in, batches, attributes, and what
// errors mean.
package amazon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithy "github.com/aws/smithy-go/middleware"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Access says which AWS is meant, and as whom. Credentials come from where every program with Amazon's SDK
// takes them: AWS_ACCESS_KEY_ID and its like, the files in ~/.aws, a service account's web identity, the
// container or the machine.
type Access struct {
	// Region is the AWS region, such as eu-west-1 (the address's; else AWS_REGION, or the profile's).
	Region string `yaml:"region"`
	// Profile is one of the files in ~/.aws (AWS_PROFILE, or default).
	Profile string `yaml:"profile"`
	// RoleARN is a role to assume with the credentials that were found (none).
	RoleARN string `yaml:"roleARN"`
	// ExternalID is what the role's trust policy may ask for (none).
	ExternalID string `yaml:"externalID"`
	// Endpoint is the URL of the server to ask instead of Amazon's public one, such as a VPC endpoint or an
	// emulator (none).
	Endpoint string `yaml:"endpoint"`
}

var regionName = regexp.MustCompile(`^[a-z]{2,}(-[a-z0-9]+)+$`)

// Validate says what is wrong with the options; it looks for no credentials.
func (a Access) Validate() error {
	switch {
	case a.Region != "" && !regionName.MatchString(a.Region):
		return fmt.Errorf("region: %q is no region, such as eu-west-1", a.Region)
	case a.RoleARN != "" && !strings.HasPrefix(a.RoleARN, "arn:"):
		return fmt.Errorf("roleARN: %q is not the ARN of a role", a.RoleARN)
	case a.RoleARN == "" && a.ExternalID != "":
		return errors.New("externalID: belongs to a roleARN")
	}
	if a.Endpoint != "" {
		u, err := url.Parse(a.Endpoint)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			return errors.New("endpoint: must be https:// or http:// and a host, without a user")
		}
	}
	return nil
}

// FromQuery takes keys of an address's query. It fails where there is one that is not ours, or twice; no value
// is in the error.
func (a *Access) FromQuery(query url.Values) error {
	fields := map[string]*string{"endpoint": &a.Endpoint, "profile": &a.Profile, "region": &a.Region, "roleARN": &a.RoleARN}
	for key, values := range query {
		field := fields[key]
		if field == nil || len(values) != 1 {
			return fmt.Errorf("%q in the query: there may be one each of endpoint, profile, region and roleARN", key)
		}
		*field = values[0]
	}
	return nil
}

// Client is the way in to AWS.
type Client struct {
	Config aws.Config
	// HTTP has the connections, for Close.
	HTTP *http.Client
	seen *seen
}

// NewClient reads files and the environment, and talks to nobody. The SDK does not try again: the pump
// does. The agent is what we call ourselves, such as tattler/v1.2.3.
func NewClient(agent string, a Access, region string, t sink.TLS, timeout time.Duration) (*Client, error) {
	name, version, _ := strings.Cut(agent, "/")
	secure, err := t.Client()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	// The SDK's own client, because it knows what AWS_CA_BUNDLE is for.
	client := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.DialContext = (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext
		tr.TLSHandshakeTimeout = timeout
		tr.TLSClientConfig = secure
	})
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithAPIOptions([]func(*smithy.Stack) error{middleware.AddUserAgentKeyValue(name, version)}),
	}
	if a.Region != "" {
		region = a.Region
	}
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	if a.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(a.Profile))
	}
	cfg, err := config.LoadDefaultConfig(context.Background(), options...)
	if err != nil {
		return nil, fmt.Errorf("aws: read the configuration of the environment and ~/.aws: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("aws: region: neither the address nor AWS_REGION nor the profile has one")
	}
	c := &Client{HTTP: &http.Client{CheckRedirect: stay}}
	c.HTTP.Transport = client.GetTransport()
	if with, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok { // with AWS_CA_BUNDLE's certificates
		c.HTTP.Transport = with.GetTransport()
	}
	cfg.HTTPClient = c.HTTP
	if a.RoleARN != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), a.RoleARN, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = name
			if a.ExternalID != "" {
				o.ExternalID = &a.ExternalID
			}
		}))
	}
	c.seen = &seen{inner: cfg.Credentials}
	cfg.Credentials = c.seen
	c.Config = cfg
	return c, nil
}

// stay does not follow a redirect: a signature is for one host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// seen remembers the last credentials, so that they can be kept out of errors: an answer about a wrong
// signature quotes the request with its session token.
type seen struct {
	inner aws.CredentialsProvider
	last  atomic.Pointer[aws.Credentials]
}

func (s *seen) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := s.inner.Retrieve(ctx)
	if err == nil {
		s.last.Store(&c)
	}
	return c, err
}

func (s *seen) blot() *sink.Blot {
	b := &sink.Blot{}
	if c := s.last.Load(); c != nil {
		b.Add(sink.LeastPassword, c.SecretAccessKey, c.SessionToken)
	}
	return b
}
