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

// refusal is the answer for one refused message.
type refusal struct {
	code, text string
	sender     bool // the message is to blame, not the service
}

// shorter matches the errors of SQS and SNS for a message that is too long.
var shorter = regexp.MustCompile(`(?i)must be shorter than (\d+) bytes|too long`)

// refused returns the error for a refused message; others of its request may have been accepted.
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

// limitOf returns the maximum length of a body if a text contains the maximum of the whole message; else 0.
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

// permanent reports whether a refusal is about the content of a message. Errors about message groups and the like are
// about the queue: every message would get them.
func permanent(r refusal) bool {
	if bare(r.code) == "InvalidMessageContents" {
		return true
	}
	return r.sender && strings.HasPrefix(bare(r.code), "InvalidParameter") && !strings.Contains(r.text, "MessageGroupId") &&
		!strings.Contains(r.text, "MessageDeduplicationId") && !strings.Contains(r.text, "ContentBasedDeduplication")
}

// failed returns the error for a whole request.
func (b *Bus) failed(err error) error {
	out := b.described(err)
	if after, ok := retryAfter(err); ok {
		return &sink.RetryAfterError{After: after, Err: out}
	}
	return out
}

func (b *Bus) described(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) {
		return b.coded(api.ErrorCode(), api.ErrorMessage())
	}
	if s := err.Error(); strings.Contains(s, "get credentials") || strings.Contains(s, "refresh cached credentials") || strings.Contains(s, "get identity") {
		return b.wrap(fmt.Errorf("no working credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the pod's role: %w", err))
	}
	return b.wrap(err)
}

// wrap adds the queue or topic to an error and masks credentials.
func (b *Bus) wrap(err error) error { return b.Client.credentials.mask().Wrap(b.what(), err) }

// coded returns an error for a code and a text of AWS, with a hint.
func (b *Bus) coded(code, text string) error {
	said := code
	// The text about a wrong signature quotes the whole request.
	if text = b.Client.credentials.mask().Excerpt([]byte(text)); text != "" && !strings.HasPrefix(bare(code), "Signature") {
		said += ": " + text
	}
	if hint := b.hint(bare(code)); hint != "" {
		said += "; " + hint
	}
	return fmt.Errorf("%s: %s", b.what(), said)
}

func (b *Bus) what() string { return "send to " + b.Place }

// hint says what to do about a code.
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
		return "it will be retried"
	case is("Kms"):
		return "grant kms:GenerateDataKey and kms:Decrypt on its key, and check that the key is enabled"
	case is("AccessDenied", "AuthorizationError", "NotAuthorized"):
		return "allow " + b.Right + " on it, in the identity's policy or in the resource's"
	case is("NonExistentQueue", "QueueDoesNotExist", "NotFound", "ResourceNotFound"):
		return "create it, or correct its name, account or region"
	case is("ExpiredToken", "RequestExpired", "RequestTimeTooSkewed"):
		return "renew the credentials, and check this machine's clock"
	case is("InvalidClientTokenId", "UnrecognizedClient", "Signature", "IncompleteSignature", "MissingAuthenticationToken", "InvalidAccessKeyId", "AuthFailure", "InvalidSecurity"):
		return "correct the credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile, or the role"
	case is("Throttl", "RequestThrottl", "OverLimit", "TooManyRequests"):
		return "the request exceeds the quota; it will be retried"
	}
	return ""
}

// bare strips the prefixes of older protocols from a code: AWS.SimpleQueueService.NonExistentQueue.
func bare(code string) string {
	code = code[strings.LastIndexByte(code, '.')+1:]
	return code[strings.LastIndexByte(code, '#')+1:]
}

// retryAfter returns the wait that the service asks for: x-amz-retry-after in milliseconds, or Retry-After.
func retryAfter(err error) (time.Duration, bool) {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil || answer.Response.Response == nil {
		return 0, false
	}
	header := answer.Response.Header
	if n, err := strconv.ParseUint(header.Get("X-Amz-Retry-After"), 10, 31); err == nil {
		return time.Duration(n) * time.Millisecond, true
	}
	return sink.RetryAfter(header.Get("Retry-After"), sink.LongestWait)
}

// tooLong reports whether a whole request was refused because of its length.
func tooLong(err error) bool {
	var api smithy.APIError
	if errors.As(err, &api) {
		return strings.HasPrefix(bare(api.ErrorCode()), "BatchRequestTooLong") || shorter.MatchString(api.ErrorMessage())
	}
	var answer *smithyhttp.ResponseError
	return errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusRequestEntityTooLarge
}
