package pubsub

import (
	"fmt"
	"regexp"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tattler-dev/tattler/internal/sink"
)

// hints are what to do about an answer.
var hints = map[codes.Code]string{
	codes.NotFound:           "create the topic (gcloud pubsub topics create), or correct its project or name",
	codes.PermissionDenied:   "give who we are the role roles/pubsub.publisher on the topic, and enable the API in its project",
	codes.Unauthenticated:    "correct or renew the credentials",
	codes.ResourceExhausted:  "the project's quota is used up; it is tried again",
	codes.FailedPrecondition: "look at the topic: its key of KMS, its ingestion, the organization's policies",
	codes.DeadlineExceeded:   "no answer in time",
}

// setUp is what Google says with INVALID_ARGUMENT of how it is asked, and so of each request: of the topic's name,
// or the project that pays.
var setUp = regexp.MustCompile(`(?i)resource name|\[topics\] name|user project|api key`)

// failed is the error for a request of one message, or one that is not about messages.
func (s *Sink) failed(err error) error {
	of := status.Convert(err)
	text := (*sink.Blot)(nil).Excerpt([]byte(of.Message()))
	if hint := hints[of.Code()]; hint != "" {
		text += "; " + hint
	}
	out := &refusal{code: of.Code(), err: err, text: fmt.Sprintf("%s: %s: %s", s.what(), of.Code(), text)}
	for _, d := range of.Details() {
		if wish, ok := d.(*errdetails.RetryInfo); ok && wish.GetRetryDelay() != nil {
			return &sink.RetryAfterError{After: wish.GetRetryDelay().AsDuration(), Err: out}
		}
	}
	if of.Code() == codes.InvalidArgument && !setUp.MatchString(of.Message()) {
		return &sink.PermanentError{Err: out}
	}
	return out
}

// refusal is an error of gRPC with a text that says what to do.
type refusal struct {
	code codes.Code
	err  error
	text string
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.err }
