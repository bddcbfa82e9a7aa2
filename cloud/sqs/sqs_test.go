package sqs

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func serve(t *testing.T, change func(*Options)) (sink.Sink, *amazontest.Server) {
	t.Helper()
	server := amazontest.New(t)
	return amazontest.Open(func(target, kind string) (sink.Sink, error) {
		o := on(target, kind)
		if change != nil {
			change(&o)
		}
		return New(amazontest.Agent, o)
	}).On(t, server, "standard"), server
}

// TestCharactersFake: SQS rejects U+FFFE and U+FFFF, which JSON allows.
func TestCharactersFake(t *testing.T) {
	s, server := serve(t, nil)
	m := sinktest.Messages(0, 1)[0]
	m.Body = []byte("{\"id\":\"x\",\"a\":\"\ufffe \uffff \ufffd\"}")
	if _, err := s.Send(t.Context(), []sink.Message{m}); err != nil {
		t.Fatal(err)
	}
	if got, want := server.Messages()[0].Body, `{"id":"x","a":"\ufffe \uffff `+"\ufffd\"}"; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
}

// overhead is what Amazon counts besides a message's body.
const overhead = len("content-type"+"String"+"application/cloudevents+json") + len("ce-type"+"String"+"dev.tattler.change.updated.v1") +
	len("op"+"String"+"updated") + len("kind"+"String"+"Deployment") + len("namespace"+"String"+"shop")

// TestSizesFake checks that a message that is too long is detected before it is sent, and that a request stays within
// the same limit.
func TestSizesFake(t *testing.T) {
	s, server := serve(t, func(o *Options) { o.Limit = 8 << 10 })
	ms := sinktest.Messages(0, 3)
	fill := func(m *sink.Message, length int) {
		m.Body = append(append([]byte(`{"id":"`), strings.Repeat("x", length-len(`{"id":""}`))...), `"}`...)
	}
	fill(&ms[0], 8<<10-overhead)
	fill(&ms[1], 8<<10-overhead+1)
	n, err := s.Send(t.Context(), ms)
	var long *sink.TooLargeError
	if n != 1 || !errors.As(err, &long) || long.Limit != 8<<10-overhead {
		t.Errorf("%d, %v with the limit %+v", n, err, long)
	}
	if r := server.Requests(); len(r) != 1 || len(r[0]) != 1 {
		t.Errorf("%d requests", len(r))
	}
}

// TestRefusalsFake checks the outcome of Amazon's answers.
func TestRefusalsFake(t *testing.T) {
	amazontest.Refusals(t, open, []amazontest.Refusal{
		{Why: "a character", Answer: amazontest.Answer{Code: "InvalidMessageContents", Text: "bad", Sender: true}, Kind: "permanent", Text: "bad"},
		{Why: "something about the message", Answer: amazontest.Answer{Code: "InvalidParameterValue", Text: "Value for parameter x is invalid", Sender: true}, Kind: "permanent", Text: "parameter x"},
		{Why: "something about the queue", Answer: amazontest.Answer{Code: "InvalidParameterValue", Text: "MessageGroupId is missing", Sender: true}, Kind: "passing", Text: "MessageGroupId"},
		{Why: "a smaller queue", Answer: amazontest.Answer{Code: "InvalidParameterValue", Text: "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.", Sender: true}, Kind: "long", Limit: 1024 - overhead, Text: "1024"},
		{Why: "a part of the service", Answer: amazontest.Answer{Code: "InternalError", Text: "try again"}, Kind: "passing", Text: "try again"},
		{Why: "a part of the throttle", Answer: amazontest.Answer{Code: "ThrottlingException", Text: "Rate exceeded"}, Kind: "passing", Text: "quota"},
		{Why: "no right", Answer: amazontest.Answer{Code: "AccessDeniedException", Text: "not authorized"}, Status: 400, Kind: "passing", Text: "allow sqs:SendMessage"},
		{Why: "no queue", Answer: amazontest.Answer{Code: "QueueDoesNotExist", Text: "no such"}, Status: 400, Kind: "passing", Text: "create it, or correct"},
		{Why: "nobody", Answer: amazontest.Answer{Code: "InvalidClientTokenId", Text: "no such key"}, Status: 403, Kind: "passing", Text: "correct the credentials"},
		{Why: "yesterday's", Answer: amazontest.Answer{Code: "ExpiredTokenException", Text: "expired"}, Status: 403, Kind: "passing", Text: "renew the credentials"},
		{Why: "a signature", Answer: amazontest.Answer{Code: "SignatureDoesNotMatch", Text: "canonical x-amz-security-token:" + amazontest.SessionToken}, Status: 403, Kind: "passing", Text: "correct the credentials"},
		{Why: "a token in an answer", Answer: amazontest.Answer{Code: "Strange", Text: "saw " + amazontest.SessionToken}, Status: 400, Kind: "passing", Text: "saw ***"},
		{Why: "a key of KMS", Answer: amazontest.Answer{Code: "KmsAccessDenied", Text: "no"}, Status: 400, Kind: "passing", Text: "kms:GenerateDataKey"},
		{Why: "too many requests", Answer: amazontest.Answer{Code: "RequestThrottled", Text: "slow down"}, Status: 400, Kind: "passing", Text: "quota"},
	})
}

// TestRoleFake checks that requests are signed with the credentials of a role.
func TestRoleFake(t *testing.T) {
	var form string
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		form = string(text)
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprint(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId>`+
			`<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`)
	}))
	defer sts.Close()
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	s, server := serve(t, func(o *Options) { o.AWS.RoleARN, o.AWS.ExternalID = "arn:aws:iam::1:role/sender", "ours" })
	if _, err := s.Send(t.Context(), sinktest.Messages(0, 1)); err != nil {
		t.Fatal(err)
	}
	if got := server.Header().Get("Authorization"); !strings.Contains(got, "Credential=ASIAROLE/") {
		t.Errorf("Authorization %s", got)
	}
	for _, want := range []string{"Action=AssumeRole", "RoleSessionName=tattler", "ExternalId=ours"} {
		if !strings.Contains(form, want) {
			t.Errorf("%s has no %s", form, want)
		}
	}
}

// TestHalvesFake checks that a request that is too long as a whole is sent in parts.
func TestHalvesFake(t *testing.T) {
	s, server := serve(t, nil)
	server.Whole(func(ms []amazontest.Message) (int, amazontest.Answer) {
		if len(ms) > 3 {
			return http.StatusBadRequest, amazontest.Answer{Code: "BatchRequestTooLong", Text: "too much"}
		}
		return 0, amazontest.Answer{}
	})
	ms := sinktest.Messages(0, 10)
	if n, err := s.Send(t.Context(), ms); n != 10 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for text, limit := range map[string]int{"too much": 0, "Message must be shorter than 2048 bytes.": 2048 - overhead} {
		server.Whole(func([]amazontest.Message) (int, amazontest.Answer) {
			return http.StatusBadRequest, amazontest.Answer{Code: "BatchRequestTooLong", Text: text}
		})
		n, err := s.Send(t.Context(), ms)
		var long *sink.TooLargeError
		if n != 0 || !errors.As(err, &long) || long.Limit != limit {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
}

// TestTimeoutFake checks that a request to a server that does not answer ends in time.
func TestTimeoutFake(t *testing.T) {
	s, server := serve(t, func(o *Options) { o.Timeout = 20 * time.Millisecond })
	server.Behave(sinktest.Hangs, "")
	n, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	server.Behave(sinktest.Works, "")
	if n != 0 || yamltest.Kind(err) != "passing" || !strings.Contains(err.Error(), "no answer within 20ms") {
		t.Errorf("%d, %v", n, err)
	}
}

// TestTLSFake checks that a server is trusted by the certificates of tls or AWS_CA_BUNDLE, and by no others.
func TestTLSFake(t *testing.T) {
	server, ca := amazontest.NewTLS(t)
	send := func(o Options) error {
		s, err := New("tattler/test", o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		_, err = s.Send(t.Context(), sinktest.Messages(0, 1))
		return err
	}
	o := on(server.Target(), "standard")
	if err := send(o); yamltest.Kind(err) != "passing" || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger: %v", err)
	}
	o.TLS.CA = ca
	if err := send(o); err != nil {
		t.Errorf("tls.ca: %v", err)
	}
	o.TLS.CA = ""
	t.Setenv("AWS_CA_BUNDLE", ca)
	if err := send(o); err != nil {
		t.Errorf("AWS_CA_BUNDLE: %v", err)
	}
}

// TestNoCredentialsFake checks that the error for missing credentials says where they come from.
func TestNoCredentialsFake(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
	s, _ := serve(t, nil)
	_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	if yamltest.Kind(err) != "passing" || !strings.Contains(err.Error(), "no working credentials") {
		t.Error(err)
	}
}
