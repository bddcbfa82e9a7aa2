// Package amazon is shared by the sinks for Amazon SNS and SQS: access, batches, attributes, and the classification
// of errors.
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

// Access selects an AWS region and account. Credentials come from the places where Amazon's SDK looks for them:
// AWS_ACCESS_KEY_ID and related variables, the files in ~/.aws, a service account's web identity, the container or
// the machine.
type Access struct {
	// Region is the AWS region, such as eu-west-1. Default: the region in the topic's ARN or the queue's URL, else
	// AWS_REGION, else the profile's region.
	Region string `yaml:"region"`
	// Profile is a profile in ~/.aws. Default: AWS_PROFILE, or default.
	Profile string `yaml:"profile"`
	// RoleARN is a role to assume with the credentials that were found.
	RoleARN string `yaml:"roleARN"`
	// ExternalID is the external id that the role's trust policy may require.
	ExternalID string `yaml:"externalID"`
	// Endpoint is the URL of a server to use instead of Amazon's public one, such as a VPC endpoint or an emulator.
	Endpoint string `yaml:"endpoint"`
}

var regionName = regexp.MustCompile(`^[a-z]{2,}(-[a-z0-9]+)+$`)

// Validate returns an error if the options are invalid. It looks up no credentials.
func (a Access) Validate() error {
	switch {
	case a.Region != "" && !regionName.MatchString(a.Region):
		return fmt.Errorf("region: %q is not a region, such as eu-west-1", a.Region)
	case a.RoleARN != "" && !strings.HasPrefix(a.RoleARN, "arn:"):
		return fmt.Errorf("roleARN: %q is not the ARN of a role", a.RoleARN)
	case a.RoleARN == "" && a.ExternalID != "":
		return errors.New("externalID: has no effect without a roleARN")
	}
	if a.Endpoint != "" {
		u, err := url.Parse(a.Endpoint)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			return errors.New("endpoint: must be https:// or http:// and a host, without a user")
		}
	}
	return nil
}

// FromQuery sets the options of an address's query. No error contains a value.
func (a *Access) FromQuery(query string) error {
	return sink.Query{
		"endpoint": sink.Text(&a.Endpoint), "profile": sink.Text(&a.Profile), "region": sink.Text(&a.Region), "roleARN": sink.Text(&a.RoleARN),
	}.Decode(query, "")
}

// Client is a configured client for AWS.
type Client struct {
	Config aws.Config
	// HTTP holds the connections, so that Close can close them.
	HTTP        *http.Client
	credentials *recordedCredentials
}

// NewClient returns a client. It reads files and the environment, and does not connect. The SDK does not retry: the
// pump does. The agent is part of the User-Agent, such as tattler/v1.2.3.
func NewClient(agent string, a Access, region string, t sink.TLS, timeout time.Duration) (*Client, error) {
	name, version, _ := strings.Cut(agent, "/")
	secure, err := t.Client()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	// The SDK's client, because it supports AWS_CA_BUNDLE.
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
		return nil, fmt.Errorf("aws: read the configuration from the environment and ~/.aws: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("aws: region: missing in the address, AWS_REGION and the profile")
	}
	c := &Client{HTTP: &http.Client{CheckRedirect: noRedirect}}
	c.HTTP.Transport = client.GetTransport()
	if with, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok { // includes the certificates of AWS_CA_BUNDLE
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
	c.credentials = &recordedCredentials{inner: cfg.Credentials}
	cfg.Credentials = c.credentials
	c.Config = cfg
	return c, nil
}

// noRedirect does not follow redirects: a signature is valid for one host.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// recordedCredentials records the last credentials, so that errors can mask them: the answer to a wrong signature
// quotes the request with its session token.
type recordedCredentials struct {
	inner aws.CredentialsProvider
	last  atomic.Pointer[aws.Credentials]
}

func (s *recordedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := s.inner.Retrieve(ctx)
	if err == nil {
		s.last.Store(&c)
	}
	return c, err
}

func (s *recordedCredentials) mask() *sink.Mask {
	b := &sink.Mask{}
	if c := s.last.Load(); c != nil {
		b.Add(sink.MinSecret, c.SecretAccessKey, c.SessionToken)
	}
	return b
}
