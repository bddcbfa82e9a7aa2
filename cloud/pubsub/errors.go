package pubsub

import (
	"fmt"
	"regexp"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tattler-dev/tattler/internal/sink"
)

// hints say what to do about a code.
var hints = map[codes.Code]string{
	codes.NotFound:           "create the topic (gcloud pubsub topics create), or correct its project or name",
	codes.PermissionDenied:   "grant the identity roles/pubsub.publisher on the topic, and enable the API in its project",
	codes.Unauthenticated:    "correct or renew the credentials",
	codes.ResourceExhausted:  "the project's quota is used up; it will be retried",
	codes.FailedPrecondition: "check the topic: its KMS key, its ingestion, the organization's policies",
	codes.DeadlineExceeded:   "no answer in time",
}

// aboutSetup matches texts of INVALID_ARGUMENT that are about the request, so that every request gets them: about the
// topic's name, or the project to bill.
var aboutSetup = regexp.MustCompile(`(?i)resource name|\[topics\] name|user project|api key`)

// failed returns the error for a request of one message, or an error that is not about messages.
func (s *Sink) failed(err error) error {
	of := status.Convert(err)
	text := (*sink.Mask)(nil).Excerpt([]byte(of.Message()))
	if hint := hints[of.Code()]; hint != "" {
		text += "; " + hint
	}
	out := &refusal{code: of.Code(), err: err, text: fmt.Sprintf("%s: %s: %s", s.what(), of.Code(), text)}
	for _, d := range of.Details() {
		if wish, ok := d.(*errdetails.RetryInfo); ok && wish.GetRetryDelay() != nil {
			return &sink.RetryAfterError{After: wish.GetRetryDelay().AsDuration(), Err: out}
		}
	}
	if of.Code() == codes.InvalidArgument && !aboutSetup.MatchString(of.Message()) {
		return &sink.PermanentError{Err: out}
	}
	return out
}

// refusal is a gRPC error with a text that includes a hint.
type refusal struct {
	code codes.Code
	err  error
	text string
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.err }
