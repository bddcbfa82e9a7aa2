// Package amazontest is a fake of the parts of Amazon SQS and SNS that the sinks use, with the protocols of their
// SDK: AWS's JSON protocol for SQS and its query protocol for SNS. The fake is our own; its answers follow the SDK's
// source and Amazon's documentation.
package amazontest

import (
	"crypto/md5" // SQS proves with it that a body arrived
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// Message is a message that arrived.
type Message struct {
	ID, Body, Group, Dedup string
	Attributes             map[string]string
}

// Answer is the answer to one message of a request. An empty Code means success.
type Answer struct {
	Code, Text string
	Sender     bool
}

// Server acts as a queue or a topic, depending on the request.
type Server struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	messages []Message
	requests [][]Message
	header   http.Header
	b        sinktest.Behaviour
	id       string
	changed  chan struct{} // closed when the behaviour changes
	downs    int
	each     func(Message) Answer
	whole    func([]Message) (status int, a Answer)
	received int    // how many messages were handed out
	deleted  int    // and how many of them were deleted
	empty    func() // called when all were handed out
}

// New starts a server that stops at the end of the test.
func New(t *testing.T) *Server {
	s := &Server{t: t, changed: make(chan struct{})}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// NewTLS starts a server with TLS, and returns a file with its certificate.
func NewTLS(t *testing.T) (s *Server, ca string) {
	s = &Server{t: t, changed: make(chan struct{})}
	s.server = httptest.NewUnstartedServer(s)
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0) // some clients are meant not to trust it
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s, ca
}

// Target returns the server's URL.
func (s *Server) Target() string { return s.server.URL }

// Behave implements sinktest.Receiver.
func (s *Server) Behave(b sinktest.Behaviour, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b, s.id = b, id
	close(s.changed)
	s.changed = make(chan struct{})
}

// Each sets a function that judges each message. Whole sets one that judges each request first; status 0 accepts it.
func (s *Server) Each(f func(Message) Answer) { s.set(func() { s.each = f }) }

// Whole sets a function that judges each request; see Each.
func (s *Server) Whole(f func([]Message) (status int, a Answer)) { s.set(func() { s.whole = f }) }

func (s *Server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Messages returns the accepted messages.
func (s *Server) Messages() (out []Message) {
	s.set(func() { out = append(out, s.messages...) })
	return out
}

// Requests returns the well-formed requests, accepted or not. Header returns the header of the last one.
func (s *Server) Requests() (out [][]Message) {
	s.set(func() { out = append(out, s.requests...) })
	return out
}

// Header returns the header of the last request.
func (s *Server) Header() (h http.Header) {
	s.set(func() { h = s.header.Clone() })
	return h
}

// Received returns the ids of the events that arrived.
func (s *Server) Received(*testing.T) []string {
	var ids []string
	for _, m := range s.Messages() {
		ids = append(ids, eventID(m))
	}
	return ids
}

func eventID(m Message) string {
	var e struct{ ID string }
	if json.Unmarshal([]byte(m.Body), &e) != nil {
		return ""
	}
	return e.ID
}

// ServeHTTP handles a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ReceiveMessage") || strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DeleteMessage") {
		s.consume(w, r, body)
		return
	}
	var answer protocol = &query{}
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		answer = &jsonRPC{target: target}
	}
	ms, err := answer.read(body)
	if err != nil || len(ms) == 0 || len(ms) > 10 {
		s.t.Errorf("request %q: %v, %d messages", body, err, len(ms))
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") {
		s.t.Errorf("no signature: %v", r.Header)
	}
	for _, m := range ms {
		if eventID(m) == "" {
			s.t.Errorf("no event: %q", m.Body)
		}
	}
	s.serve(w, r, ms, answer)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, ms []Message, p protocol) {
	s.mu.Lock()
	b, changed, each, whole := s.b, s.changed, s.each, s.whole
	s.downs++
	downs, poison := s.downs, s.id
	s.requests = append(s.requests, ms)
	s.header = r.Header
	s.mu.Unlock()
	switch {
	case b == sinktest.Down && downs%3 == 0:
		reset(s.t, w)
		return
	case b == sinktest.Down:
		p.fail(w, http.StatusInternalServerError, Answer{Code: "InternalError", Text: "try again"})
		return
	case b == sinktest.Busy: // Amazon does not name a time, but a proxy in front of it may
		w.Header().Set("Retry-After", strconv.Itoa(int(sinktest.BusyFor/time.Second)))
		p.fail(w, http.StatusServiceUnavailable, Answer{Code: "ThrottlingException", Text: "Rate exceeded"})
		return
	case b == sinktest.Hangs:
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	case b == sinktest.Slow:
		<-time.After(20 * time.Millisecond)
	}
	if whole != nil {
		if status, a := whole(ms); status != 0 {
			p.fail(w, status, a)
			return
		}
	}
	answers := make([]Answer, len(ms))
	for i, m := range ms {
		if each != nil {
			answers[i] = each(m)
		}
		if b == sinktest.Refuses && eventID(m) == poison {
			answers[i] = Answer{Code: "InvalidMessageContents", Text: "characters outside the allowed set", Sender: true}
		}
		if answers[i].Code == "" {
			s.set(func() { s.messages = append(s.messages, m) })
		}
	}
	p.answer(w, ms, answers)
}

// reset ends a connection like a process that dies.
func reset(t *testing.T, w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close() // the connection is reset anyway
}

// protocol is the wire format of a service.
type protocol interface {
	read(body []byte) ([]Message, error)
	answer(w http.ResponseWriter, ms []Message, as []Answer)
	fail(w http.ResponseWriter, status int, a Answer)
}

// jsonRPC is AWS JSON 1.0, the protocol of SQS.
type jsonRPC struct{ target string }

func (j *jsonRPC) read(body []byte) ([]Message, error) {
	if j.target != "AmazonSQS.SendMessageBatch" {
		return nil, fmt.Errorf("unknown target %s", j.target)
	}
	var in struct {
		Entries []struct {
			ID                string `json:"Id"`
			MessageBody       string
			MessageAttributes map[string]struct{ DataType, StringValue string }
			Group             string `json:"MessageGroupId"`
			Dedup             string `json:"MessageDeduplicationId"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var ms []Message
	for _, e := range in.Entries {
		m := Message{ID: e.ID, Body: e.MessageBody, Group: e.Group, Dedup: e.Dedup, Attributes: map[string]string{}}
		for name, a := range e.MessageAttributes {
			m.Attributes[name] = a.StringValue
		}
		ms = append(ms, m)
	}
	return ms, nil
}

func (j *jsonRPC) answer(w http.ResponseWriter, ms []Message, as []Answer) {
	successful, failed := []map[string]any{}, []map[string]any{}
	for i, m := range ms {
		if as[i].Code != "" {
			failed = append(failed, map[string]any{"Id": m.ID, "Code": as[i].Code, "Message": as[i].Text, "SenderFault": as[i].Sender})
			continue
		}
		sum := md5.Sum([]byte(m.Body))
		successful = append(successful, map[string]any{"Id": m.ID, "MessageId": "m-" + m.ID, "MD5OfMessageBody": hex.EncodeToString(sum[:])})
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(map[string]any{"Successful": successful, "Failed": failed})
}

func (j *jsonRPC) fail(w http.ResponseWriter, status int, a Answer) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"__type": "com.amazonaws.sqs#" + a.Code, "message": a.Text})
}

// query is AWS's query protocol, the protocol of SNS.
type query struct{}

func (q *query) read(body []byte) ([]Message, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("Action") != "PublishBatch" {
		return nil, fmt.Errorf("unknown action %q: %w", form.Get("Action"), err)
	}
	var ms []Message
	for i := 1; ; i++ {
		at := fmt.Sprintf("PublishBatchRequestEntries.member.%d.", i)
		if !form.Has(at + "Id") {
			return ms, nil
		}
		m := Message{
			ID: form.Get(at + "Id"), Body: form.Get(at + "Message"), Attributes: map[string]string{},
			Group: form.Get(at + "MessageGroupId"), Dedup: form.Get(at + "MessageDeduplicationId"),
		}
		for j := 1; form.Has(fmt.Sprintf("%sMessageAttributes.entry.%d.Name", at, j)); j++ {
			entry := fmt.Sprintf("%sMessageAttributes.entry.%d.", at, j)
			m.Attributes[form.Get(entry+"Name")] = form.Get(entry + "Value.StringValue")
		}
		ms = append(ms, m)
	}
}

func (q *query) answer(w http.ResponseWriter, ms []Message, as []Answer) {
	var successful, failed strings.Builder
	for i, m := range ms {
		if as[i].Code != "" {
			fmt.Fprintf(&failed, "<member><Id>%s</Id><Code>%s</Code><Message>%s</Message><SenderFault>%t</SenderFault></member>",
				m.ID, as[i].Code, escape(as[i].Text), as[i].Sender)
			continue
		}
		fmt.Fprintf(&successful, "<member><Id>%s</Id><MessageId>m-%s</MessageId></member>", m.ID, m.ID)
	}
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, `<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult><Successful>%s</Successful>`+
		`<Failed>%s</Failed></PublishBatchResult></PublishBatchResponse>`, &successful, &failed)
}

func (q *query) fail(w http.ResponseWriter, status int, a Answer) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>`,
		a.Code, escape(a.Text))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// Environment sets the credentials in a process's environment, and hides the user's own.
func Environment(setenv func(key, value string) error) {
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": SecretKey, "AWS_SESSION_TOKEN": SessionToken,
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_CA_BUNDLE": "",
	} {
		if err := setenv(key, value); err != nil {
			panic(err)
		}
	}
}

// The credentials of Environment.
const (
	SecretKey    = "secret/key+of/the/test"
	SessionToken = "session-token-of-the-test"
)
