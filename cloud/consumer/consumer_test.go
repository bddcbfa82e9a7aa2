package consumer

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	pubsubclient "cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sqsclient "github.com/aws/aws-sdk-go-v2/service/sqs"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/cloud/pubsub"
	"github.com/tattler-dev/tattler/cloud/sqs"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	amazontest.Environment(os.Setenv)
	os.Exit(m.Run())
}

// twice sends messages and then repeats them, as a crash may.
func twice(t *testing.T, s sink.Sink, ms []sink.Message) {
	t.Helper()
	for range 2 {
		if _, err := s.Send(t.Context(), ms); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// counted returns a handle that stops the consumer after so many changes, and the changes that it got.
func counted(n int, end func()) (handle func(event.Event) error, got *[]string) {
	got = new([]string)
	return func(e event.Event) error {
		*got = append(*got, e.ID)
		if len(*got) == n {
			end()
		}
		return nil
	}, got
}

func check(t *testing.T, ms []sink.Message, got []string) {
	t.Helper()
	for _, m := range ms {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(id string) bool { return id != m.ID })); n != 1 {
			t.Errorf("event %s was handled %d times", m.ID, n)
		}
	}
}

func TestFromSQSFake(t *testing.T) {
	const queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/changes"
	server := amazontest.New(t)
	s, err := sqs.New("tattler/test", sqs.Options{Queue: queue, AWS: amazon.Access{Endpoint: server.Target()}})
	if err != nil {
		t.Fatal(err)
	}
	ms := sinktest.Messages(0, 15)
	twice(t, s, ms)
	client := sqsclient.NewFromConfig(aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.Target()), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handle, got := counted(len(ms), func() {})
	server.Empty(cancel) // stop when the queue is empty
	if err := FromSQS(ctx, client, queue, handle); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	check(t, ms, *got)
}

func TestFromPubSubFake(t *testing.T) {
	const topic, subscription = "projects/test/topics/changes", "projects/test/subscriptions/ours"
	server := pstest.NewServer()
	defer server.Close()
	if _, err := server.GServer.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.GServer.CreateSubscription(t.Context(), &pubsubpb.Subscription{
		Name: subscription, Topic: topic, AckDeadlineSeconds: 10, EnableMessageOrdering: true,
	}); err != nil {
		t.Fatal(err)
	}
	s, err := pubsub.New("tattler/test", pubsub.Options{Topic: topic, Emulator: server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	ms := sinktest.Messages(0, 15)
	twice(t, s, ms)
	client, err := pubsubclient.NewClient(t.Context(), "test", option.WithEndpoint(server.Addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handle, got := counted(len(ms), cancel)
	if err := FromPubSub(ctx, client, subscription, handle); err != nil {
		t.Error(err)
	}
	check(t, ms, *got)
}
