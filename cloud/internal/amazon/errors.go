package amazon

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tattler-dev/tattler/internal/sink"
)

// refusal is what was said of one message.
type refusal struct {
	code, text string
	sender     bool // the message is to blame, not the service
}

// shorter is how SQS and SNS say that a message is longer than the queue or topic takes.
var shorter = regexp.MustCompile(`(?i)must be shorter than (\d+) bytes|too long`)

// refused is the error for a message that was refused while others may have been taken.
func (b *Bus) refused(r refusal, overhead int) error {
	err := b.coded(r.code, r.text)
	if shorter.MatchString(r.text) || strings.Contains(r.code, "TooLong") {
		return &sink.TooLargeError{Limit: limitOf(r.text, overhead), Err: err}
	}
	if permanent(r) {
		return &sink.PermanentError{Err: err}
	}
	return err
}

// limitOf is how long a body may be, where a text says how long all may be; else 0.
func limitOf(text string, overhead int) int {
	long := shorter.FindStringSubmatch(text)
	if long == nil {
		return 0
	}
	n, err := strconv.Atoi(long[1])
	if err != nil {
		return 0
	}
	return max(0, n-overhead)
}

// permanent tells whether a refusal is about what a message says. Groups and the like are about the queue:
// each message would be refused.
func permanent(r refusal) bool {
	if bare(r.code) == "InvalidMessageContents" {
		return true
	}
	return r.sender && strings.HasPrefix(bare(r.code), "InvalidParameter") && !strings.Contains(r.text, "MessageGroupId") &&
		!strings.Contains(r.text, "MessageDeduplicationId") && !strings.Contains(r.text, "ContentBasedDeduplication")
}

// failed is the error for a whole request.
func (b *Bus) failed(err error) error {
	out := b.told(err)
	if after, ok := retryAfter(err); ok {
		return &sink.RetryAfterError{After: after, Err: out}
	}
	return out
}

func (b *Bus) told(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) {
		return b.coded(api.ErrorCode(), api.ErrorMessage())
	}
	blot := b.Client.seen.blot()
	if s := err.Error(); strings.Contains(s, "get credentials") || strings.Contains(s, "refresh cached credentials") || strings.Contains(s, "get identity") {
		return fmt.Errorf("%s: no credentials that work: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the pod's role: %w", b.what(), blot.Error(err))
	}
	return fmt.Errorf("%s: %w", b.what(), blot.Error(err))
}

// coded is an error that AWS told, and what to do about it.
func (b *Bus) coded(code, text string) error {
	said := code
	// What AWS says of a wrong signature quotes the whole request.
	if text = b.Client.seen.blot().Excerpt([]byte(text)); text != "" && !strings.HasPrefix(bare(code), "Signature") {
		said += ": " + text
	}
	if hint := b.hint(bare(code)); hint != "" {
		said += "; " + hint
	}
	return fmt.Errorf("%s: %s", b.what(), said)
}

func (b *Bus) what() string { return "send to " + b.Place }

// hint is what to do about a code.
func (b *Bus) hint(code string) string {
	is := func(beginnings ...string) bool {
		for _, s := range beginnings {
			if strings.HasPrefix(strings.ToLower(code), strings.ToLower(s)) {
				return true
			}
		}
		return false
	}
	switch {
	case is("KmsThrottl"):
		return "it is tried again"
	case is("Kms"):
		return "let us use its key (kms:GenerateDataKey and kms:Decrypt), and see that the key is enabled"
	case is("AccessDenied", "AuthorizationError", "NotAuthorized"):
		return "allow " + b.Right + " on it, in the policy of who we are or in its own"
	case is("NonExistentQueue", "QueueDoesNotExist", "NotFound", "ResourceNotFound"):
		return "create it, or correct its name, account or region"
	case is("ExpiredToken", "RequestExpired", "RequestTimeTooSkewed"):
		return "renew the credentials, and see that this machine's clock is right"
	case is("InvalidClientTokenId", "UnrecognizedClient", "Signature", "IncompleteSignature", "MissingAuthenticationToken", "InvalidAccessKeyId", "AuthFailure", "InvalidSecurity"):
		return "correct the credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile, or the role"
	case is("Throttl", "RequestThrottl", "OverLimit", "TooManyRequests"):
		return "it is asked for more than its quota; it is tried again"
	}
	return ""
}

// bare is a code without what older protocols put around it: AWS.SimpleQueueService.NonExistentQueue.
func bare(code string) string {
	code = code[strings.LastIndexByte(code, '.')+1:]
	return code[strings.LastIndexByte(code, '#')+1:]
}

// retryAfter is how long the service wants to be left alone: x-amz-retry-after in milliseconds, or
// Retry-After in seconds.
func retryAfter(err error) (time.Duration, bool) {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil || answer.Response.Response == nil {
		return 0, false
	}
	header := answer.Response.Header
	for _, h := range []struct {
		value string
		unit  time.Duration
	}{{header.Get("X-Amz-Retry-After"), time.Millisecond}, {header.Get("Retry-After"), time.Second}} {
		if n, err := strconv.ParseUint(h.value, 10, 31); err == nil {
			return time.Duration(n) * h.unit, true
		}
	}
	return 0, false
}

// tooLong tells whether a whole request was refused for its length.
func tooLong(err error) bool {
	var api smithy.APIError
	if errors.As(err, &api) {
		return strings.HasPrefix(bare(api.ErrorCode()), "BatchRequestTooLong") || shorter.MatchString(api.ErrorMessage())
	}
	var answer *smithyhttp.ResponseError
	return errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusRequestEntityTooLarge
}
