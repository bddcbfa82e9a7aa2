package sns

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// TestRefusalsFake checks the outcome of Amazon's answers. The code shared with SQS is tested there.
func TestRefusalsFake(t *testing.T) {
	amazontest.Refusals(t, open, []amazontest.Refusal{
		{Why: "something about the message", Answer: amazontest.Answer{Code: "InvalidParameter", Text: "Invalid parameter: x", Sender: true}, Kind: "permanent", Text: "parameter: x"},
		{Why: "too long", Answer: amazontest.Answer{Code: "InvalidParameter", Text: "Invalid parameter: Message too long", Sender: true}, Kind: "long", Text: "too long"},
		{Why: "the service", Answer: amazontest.Answer{Code: "InternalError", Text: "try again"}, Kind: "passing", Text: "try again"},
		{Why: "no right", Answer: amazontest.Answer{Code: "AuthorizationError", Text: "not authorized"}, Status: 403, Kind: "passing", Text: "allow sns:Publish"},
		{Why: "no topic", Answer: amazontest.Answer{Code: "NotFound", Text: "no such"}, Status: 404, Kind: "passing", Text: "create it, or correct"},
		{Why: "a wrong parameter of the request", Answer: amazontest.Answer{Code: "InvalidParameter", Text: "TopicArn"}, Status: 400, Kind: "passing", Text: "TopicArn"},
		{Why: "the throttle", Answer: amazontest.Answer{Code: "Throttled", Text: "slow down"}, Status: 429, Kind: "passing", Text: "quota"},
	})
}

// TestSilenceFake checks that an answer that omits a message does not acknowledge it.
func TestSilenceFake(t *testing.T) {
	server := amazontest.New(t)
	server.Whole(func([]amazontest.Message) (int, amazontest.Answer) {
		return http.StatusOK, amazontest.Answer{} // an ErrorResponse instead of a PublishBatchResponse
	})
	n, err := amazontest.Open(open).On(t, server, "standard").Send(t.Context(), sinktest.Messages(0, 2))
	if n != 0 || yamltest.Kind(err) != "passing" || !strings.Contains(err.Error(), topics["standard"]) {
		t.Errorf("%d, %v", n, err)
	}
}
