package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tattler-dev/tattler/examples/internal/program"
)

// cloud is where the instances are.
type cloud interface {
	// Instance returns the ID of an instance, if a provider ID names one of this cloud.
	Instance(providerID string) (id string, ok bool)
	// Tags returns the tags of instances, in as few calls as it can. With an error, it returns those that it has.
	Tags(ctx context.Context, ids []string) (map[string]map[string]string, error)
}

// ec2Cloud is AWS EC2.
type ec2Cloud struct{ client *ec2.Client }

// newEC2 takes credentials, region and endpoint from the environment, the shared files or the instance, as any program
// that uses the SDK does. When it is throttled, the SDK slows down and retries.
func newEC2(ctx context.Context) (*ec2Cloud, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRetryMode(aws.RetryModeAdaptive), config.WithRetryMaxAttempts(5))
	if err != nil {
		return nil, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	if cfg.Region == "" {
		return nil, program.Usage("no AWS region is set: set AWS_REGION")
	}
	return &ec2Cloud{ec2.NewFromConfig(cfg)}, nil
}

// Instance knows provider IDs such as aws:///eu-west-1a/i-0abc.
func (*ec2Cloud) Instance(providerID string) (string, bool) {
	rest, ok := strings.CutPrefix(providerID, "aws://")
	id := rest[strings.LastIndex(rest, "/")+1:]
	return id, ok && strings.HasPrefix(id, "i-")
}

// perCall is how many instances EC2 takes in one filter.
const perCall = 200

func (c *ec2Cloud) Tags(ctx context.Context, ids []string) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for batch := range slices.Chunk(ids, perCall) {
		some := map[string]map[string]string{}
		for _, id := range batch {
			some[id] = map[string]string{} // it may have none
		}
		pages := ec2.NewDescribeTagsPaginator(c.client, &ec2.DescribeTagsInput{
			MaxResults: aws.Int32(1000),
			Filters:    []types.Filter{{Name: aws.String("resource-id"), Values: batch}},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return all, err
			}
			for _, tag := range page.Tags {
				if of := some[aws.ToString(tag.ResourceId)]; of != nil {
					of[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
				}
			}
		}
		for id, tags := range some {
			all[id] = tags
		}
	}
	return all, nil
}
