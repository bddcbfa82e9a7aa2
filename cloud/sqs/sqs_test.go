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

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func serve(t *testing.T, kind string, change func(*Options)) (*Sink, *amazontest.Server) {
	t.Helper()
	server := amazontest.New(t)
	o := on(server.Target(), kind)
	if change != nil {
		change(&o)
	}
	s, err := New("tattler/v1.2.3", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) }) // the suite looks at its error
	return s, server
}

// TestRequestFake: what the fake sees of a request, as Amazon would.
func TestRequestFake(t *testing.T) {
	for kind, want := range map[string][]int{
		"standard": {10, 10, 4},              // as many as there may be
		"fifo":     {3, 3, 3, 3, 3, 3, 3, 3}, // three objects take turns, and one is in a request once
	} {
		s, server := serve(t, kind, nil)
		ms := sinktest.Messages(0, 24)
		if n, err := s.Send(t.Context(), ms); n != 24 || err != nil {
			t.Fatalf("%s: %d, %v", kind, n, err)
		}
		var sizes []int
		for _, r := range server.Requests() {
			sizes = append(sizes, len(r))
		}
		if d := cmp.Diff(want, sizes); d != "" {
			t.Errorf("%s: messages of requests (-want +got):\n%s", kind, d)
		}
		m := server.Messages()[0]
		attributes := map[string]string{
			"content-type": "application/cloudevents+json", "ce-type": "dev.tattler.change.updated.v1",
			"op": "updated", "kind": "Deployment", "namespace": "shop",
		}
		if d := cmp.Diff(attributes, m.Attributes); d != "" || m.Body != string(ms[0].Body) {
			t.Errorf("%s: body %s, attributes (-want +got):\n%s", kind, m.Body, d)
		}
		group, dedup := "", ""
		if kind == "fifo" {
			group, dedup = ms[0].Key, ms[0].ID
		}
		if m.Group != group || m.Dedup != dedup {
			t.Errorf("%s: group %q, deduplication %q", kind, m.Group, m.Dedup)
		}
		if agent := server.Header().Get("User-Agent"); !strings.Contains(agent, "tattler/v1.2.3") {
			t.Errorf("%s: User-Agent %q", kind, agent)
		}
	}
}

// TestCharactersFake: SQS takes no U+FFFE and U+FFFF, which JSON may have.
func TestCharactersFake(t *testing.T) {
	s, server := serve(t, "standard", nil)
	m := sinktest.Messages(0, 1)[0]
	m.Body = []byte("{\"id\":\"x\",\"a\":\"\ufffe \uffff \ufffd\"}")
	if _, err := s.Send(t.Context(), []sink.Message{m}); err != nil {
		t.Fatal(err)
	}
	if got, want := server.Messages()[0].Body, `{"id":"x","a":"\ufffe \uffff `+"\ufffd\"}"; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
}

// overhead is what Amazon counts of a message besides its body.
const overhead = len("content-type"+"String"+"application/cloudevents+json") + len("ce-type"+"String"+"dev.tattler.change.updated.v1") +
	len("op"+"String"+"updated") + len("kind"+"String"+"Deployment") + len("namespace"+"String"+"shop")

// TestSizesFake: what is too long is known before it is sent, and a request is not longer than a message may be.
func TestSizesFake(t *testing.T) {
	s, server := serve(t, "standard", func(o *Options) { o.Limit = 8 << 10 })
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

// TestRefusalsFake: what Amazon answers, and what comes of it.
func TestRefusalsFake(t *testing.T) {
	for _, tc := range []struct {
		why   string
		each  amazontest.Answer // for the second message
		whole amazontest.Answer
		code  int
		want  string // the kind of error, and a part of its text
		text  string
	}{
		{"a character", amazontest.Answer{Code: "InvalidMessageContents", Text: "bad", Sender: true}, amazontest.Answer{}, 0, "permanent", "bad"},
		{"something about the message", amazontest.Answer{Code: "InvalidParameterValue", Text: "Value for parameter x is invalid", Sender: true}, amazontest.Answer{}, 0, "permanent", "parameter x"},
		{"something about the queue", amazontest.Answer{Code: "InvalidParameterValue", Text: "MessageGroupId is missing", Sender: true}, amazontest.Answer{}, 0, "passing", "MessageGroupId"},
		{"a smaller queue", amazontest.Answer{Code: "InvalidParameterValue", Text: "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.", Sender: true}, amazontest.Answer{}, 0, "long", "1024"},
		{"a part of the service", amazontest.Answer{Code: "InternalError", Text: "try again"}, amazontest.Answer{}, 0, "passing", "try again"},
		{"a part of the throttle", amazontest.Answer{Code: "ThrottlingException", Text: "Rate exceeded"}, amazontest.Answer{}, 0, "passing", "quota"},
		{"no right", amazontest.Answer{}, amazontest.Answer{Code: "AccessDeniedException", Text: "not authorized"}, 400, "passing", "allow sqs:SendMessage"},
		{"no queue", amazontest.Answer{}, amazontest.Answer{Code: "QueueDoesNotExist", Text: "no such"}, 400, "passing", "create it, or correct"},
		{"nobody", amazontest.Answer{}, amazontest.Answer{Code: "InvalidClientTokenId", Text: "no such key"}, 403, "passing", "correct the credentials"},
		{"yesterday's", amazontest.Answer{}, amazontest.Answer{Code: "ExpiredTokenException", Text: "expired"}, 403, "passing", "renew the credentials"},
		{"a signature", amazontest.Answer{}, amazontest.Answer{Code: "SignatureDoesNotMatch", Text: "canonical x-amz-security-token:" + amazontest.SessionToken}, 403, "passing", "correct the credentials"},
		{"a token in an answer", amazontest.Answer{}, amazontest.Answer{Code: "Strange", Text: "saw " + amazontest.SessionToken}, 400, "passing", "saw ***"},
		{"a key of KMS", amazontest.Answer{}, amazontest.Answer{Code: "KmsAccessDenied", Text: "no"}, 400, "passing", "kms:GenerateDataKey"},
		{"too many requests", amazontest.Answer{}, amazontest.Answer{Code: "RequestThrottled", Text: "slow down"}, 400, "passing", "quota"},
	} {
		s, server := serve(t, "standard", nil)
		ms := sinktest.Messages(0, 2)
		server.Each(func(m amazontest.Message) amazontest.Answer {
			if m.Body == string(ms[1].Body) {
				return tc.each
			}
			return amazontest.Answer{}
		})
		server.Whole(func([]amazontest.Message) (int, amazontest.Answer) { return tc.code, tc.whole })
		n, err := s.Send(t.Context(), ms)
		want := 1
		if tc.code != 0 {
			want = 0
		}
		if got := kind(err); n != want || got != tc.want {
			t.Errorf("%s: %d acknowledged, %s: %v", tc.why, n, got, err)
		}
		yamltest.Check(t, tc.why, err, tc.text)
		if strings.Contains(err.Error(), amazontest.SessionToken) || strings.Contains(err.Error(), amazontest.SecretKey) {
			t.Errorf("%s: a credential in %v", tc.why, err)
		}
		var long *sink.TooLargeError
		if errors.As(err, &long) && long.Limit != 1024-overhead {
			t.Errorf("%s: limit %d", tc.why, long.Limit)
		}
	}
}

// TestRoleFake: with a role, requests are signed by it.
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
	s, server := serve(t, "standard", func(o *Options) { o.AWS.RoleARN, o.AWS.ExternalID = "arn:aws:iam::1:role/sender", "ours" })
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

// kind is what an error means to the pump.
func kind(err error) string {
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &permanent):
		return "permanent"
	case errors.As(err, &long):
		return "long"
	}
	return "passing"
}

// TestHalvesFake: a request that is too long as a whole is sent in parts.
func TestHalvesFake(t *testing.T) {
	s, server := serve(t, "standard", nil)
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
	server.Whole(func([]amazontest.Message) (int, amazontest.Answer) {
		return http.StatusBadRequest, amazontest.Answer{Code: "BatchRequestTooLong", Text: "too much"}
	})
	if n, err := s.Send(t.Context(), ms); n != 0 || kind(err) != "long" {
		t.Errorf("%d, %v", n, err)
	}
}

// TestTimeoutFake: a server that does not answer ends a request, not the process's patience.
func TestTimeoutFake(t *testing.T) {
	s, server := serve(t, "standard", func(o *Options) { o.Timeout = 20 * time.Millisecond })
	server.Behave(sinktest.Hangs, "")
	n, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	server.Behave(sinktest.Works, "")
	if n != 0 || kind(err) != "passing" || !strings.Contains(err.Error(), "no answer within 20ms") {
		t.Errorf("%d, %v", n, err)
	}
}

// TestTLSFake: a server is trusted by the certificates of tls or of AWS_CA_BUNDLE, and by no others.
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
	if err := send(o); kind(err) != "passing" || !strings.Contains(err.Error(), "certificate") {
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

// TestNoCredentialsFake: who has none is told where they come from.
func TestNoCredentialsFake(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
	s, _ := serve(t, "standard", nil)
	_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	if kind(err) != "passing" || !strings.Contains(err.Error(), "no credentials that work") {
		t.Error(err)
	}
}
