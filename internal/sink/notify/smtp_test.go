package notify

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bytes"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// post is a small mail server, whose answers a test can replace.
type post struct {
	t        *testing.T
	listener net.Listener
	tls      *tls.Config // nil: no STARTTLS
	implicit bool
	auth     string            // the login mechanisms that it offers
	says     map[string]string // answers by verb or whole line; DATA. is the end of a mail

	mu     sync.Mutex
	mails  []string
	lines  []string // what it received, except mails
	logins []string
	wg     sync.WaitGroup
}

func newPost(t *testing.T, configure func(*post)) *post {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &post{t: t, listener: l, says: map[string]string{}}
	if configure != nil {
		configure(p)
	}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.wg.Wait()
	})
	return p
}

// url returns the address of the sink, with a user if one is given.
func (p *post) url(scheme, user string) string {
	if user != "" {
		user += "@"
	}
	return scheme + "://" + user + p.listener.Addr().String() + "/ops@example.com,Dev%20Team%20%3Cdev@example.com%3E?from=Tattler%20%3Ctattler@example.com%3E"
}

func (p *post) serve(conn net.Conn) {
	defer func() { conn.Close() }()
	if p.implicit {
		conn = tls.Server(conn, p.tls)
	}
	r := bufio.NewReader(conn)
	read := func() (string, bool) {
		line, err := r.ReadString('\n')
		return strings.TrimRight(line, "\r\n"), err == nil
	}
	say := func(verb, usual string) {
		if said, ok := p.says[verb]; ok {
			usual = said
		}
		fmt.Fprintf(conn, "%s\r\n", strings.ReplaceAll(usual, "\n", "\r\n"))
	}
	say("", "220 post ready")
	secured := p.implicit
	for {
		line, ok := read()
		if !ok {
			return
		}
		p.mu.Lock()
		p.lines = append(p.lines, line)
		p.mu.Unlock()
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			hello := "250-post\n250-8BITMIME\n"
			if p.tls != nil && !secured {
				hello += "250-STARTTLS\n"
			}
			if p.auth != "" {
				hello += "250-AUTH " + p.auth + "\n"
			}
			say("EHLO", hello+"250 SIZE 1000000")
		case "STARTTLS":
			say("STARTTLS", "220 go on")
			conn = tls.Server(conn, p.tls)
			r, secured = bufio.NewReader(conn), true
		case "AUTH":
			p.login(rest, read, say)
		case "DATA":
			say("DATA", "354 go on")
			if _, refused := p.says["DATA"]; refused {
				continue
			}
			var b strings.Builder
			for line, ok := read(); ok && line != "."; line, ok = read() {
				b.WriteString(strings.TrimPrefix(line, ".") + "\r\n")
			}
			if _, refused := p.says["DATA."]; !refused {
				p.mu.Lock()
				p.mails = append(p.mails, b.String())
				p.mu.Unlock()
			}
			say("DATA.", "250 taken")
		case "QUIT":
			say("QUIT", "221 bye")
			return
		default:
			say(strings.ToUpper(verb), cmp.Or(p.says[line], "250 ok"))
		}
	}
}

func (p *post) login(how string, read func() (string, bool), say func(verb, usual string)) {
	decoded := func(s string) string {
		text, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			p.t.Errorf("login %q: %v", s, err)
		}
		return string(text)
	}
	got := ""
	if way, first, _ := strings.Cut(how, " "); way == "PLAIN" {
		got = decoded(first)
	} else {
		for _, question := range []string{"Username:", "Password:"} {
			say("", "334 "+base64.StdEncoding.EncodeToString([]byte(question)))
			answer, _ := read()
			got += "\x00" + decoded(answer)
		}
	}
	p.mu.Lock()
	p.logins = append(p.logins, got)
	p.mu.Unlock()
	say("AUTH", "235 in")
}

// letter is a decoded mail.
func letter(t *testing.T, raw string) (header mail.Header, text string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	return m.Header, strings.ReplaceAll(string(body), "\r\n", "\n")
}

func TestMails(t *testing.T) {
	p := newPost(t, nil)
	var named bytes.Buffer
	tellAll(t, Options{URL: p.url("smtp", "")}, &named)
	var got strings.Builder
	decoder := mime.WordDecoder{}
	for i, name := range strings.Split(strings.TrimSpace(named.String()), "\n") {
		h, text := letter(t, p.mails[i])
		subject := must(decoder.DecodeHeader(h.Get("Subject")))(t)
		fmt.Fprintf(&got, "%s\nFrom: %s\nTo: %s\nSubject: %s\nMessage-ID: %s\nContent-Type: %s\n\n%s\n", name,
			h.Get("From"), h.Get("To"), subject, h.Get("Message-Id"), h.Get("Content-Type"), text)
		if _, err := h.Date(); err != nil {
			t.Errorf("date: %v", err)
		}
		for line := range strings.SplitSeq(p.mails[i], "\r\n") {
			if len(line) > 998 {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
	}
	golden(t, "smtp", got.String())
	want := []string{"MAIL FROM:<tattler@example.com> BODY=8BITMIME", "RCPT TO:<ops@example.com>", "RCPT TO:<dev@example.com>", "DATA", "QUIT"}
	if got := strings.Join(p.lines[1:6], "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the server received %s", got)
	}
}

// oneMail sends a change as a mail.
func oneMail(t *testing.T, o Options) error {
	t.Helper()
	o.Timeout = time.Minute
	s := must(New("tattler/test", o))(t)
	defer s.Close(t.Context())
	_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	return err
}

func TestMailLogsIn(t *testing.T) {
	pair, ca := certificate(t)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	trust := sink.TLS{CA: ca}
	for _, tc := range []struct {
		why, scheme string
		configure   func(*post)
	}{
		{"PLAIN after STARTTLS", "smtp", func(p *post) { p.tls, p.auth = config, "LOGIN PLAIN" }},
		{"LOGIN where there is nothing else", "smtp", func(p *post) { p.tls, p.auth = config, "LOGIN" }},
		{"TLS from the first byte on", "smtps", func(p *post) { p.tls, p.auth, p.implicit = config, "PLAIN", true }},
	} {
		p := newPost(t, tc.configure)
		if err := oneMail(t, Options{URL: p.url(tc.scheme, "us%40er:pass%2Fword"), TLS: trust}); err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if len(p.mails) != 1 || len(p.logins) != 1 || p.logins[0] != "\x00us@er\x00pass/word" {
			t.Errorf("%s: %d mails, logins %q", tc.why, len(p.mails), p.logins)
		}
	}
	p := newPost(t, func(p *post) { p.tls = config })
	if err := oneMail(t, Options{URL: p.url("smtp", "")}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that nobody trusts: %v", err)
	}
	p = newPost(t, nil)
	if err := oneMail(t, Options{URL: p.url("smtp", "") + "&tls=always"}); err == nil || !strings.Contains(err.Error(), "STARTTLS") {
		t.Errorf("tls=always: %v", err)
	}
}

// TestNoSTARTTLS: a server without TLS gets a password only on this machine, or if the options allow it.
func TestNoSTARTTLS(t *testing.T) {
	p := newPost(t, nil)
	at, err := url.Parse(p.url("smtp", ""))
	if err != nil {
		t.Fatal(err)
	}
	c, err := smtp.Dial(at.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tc := range []struct {
		host     string
		insecure bool
		refused  bool
	}{{"mail.example.com", false, true}, {"mail.example.com", true, false}, {"127.0.0.1", false, false}} {
		m := &mailer{mailTarget: mailTarget{host: tc.host, user: "u", password: "w0rdw0rdw0rd", tls: "auto"}, insecure: tc.insecure}
		if err := m.startTLS(c); (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "mail.example.com in clear text") {
			t.Errorf("%s, insecure %v: %v", tc.host, tc.insecure, err)
		}
	}
}

func TestMailErrors(t *testing.T) {
	for _, tc := range []struct {
		why, verb, says, want string
		permanent             bool
	}{
		{"busy", "MAIL", "421 try later", "421", false},
		{"a wrong password passes", "AUTH", "535 wrong: us3r-word", "log in as user: 535", false},
		{"an unknown sender passes", "MAIL", "550 who?", "sender tattler@example.com: 550", false},
		{"an unknown recipient passes", "RCPT", "550 no such mailbox", "recipient ops@example.com: 550", false},
		{"full", "DATA.", "452 no room", "452", false},
		{"refused", "DATA.", "554 looks like spam", `554 "looks like spam"`, true},
		{"refused by policy, and so for what it says", "DATA.", "550 5.7.1 rejected as spam", "5.7.1", true},
		{"and in the words of others", "DATA.", "550 5.7.1 likely unsolicited mail", "5.7.1", true},
		{"too long after all", "DATA.", "552 5.3.4 message size exceeds fixed limit", "5.3.4", true},
		{"a sender that Amazon has not verified passes", "DATA.", "554 Message rejected: Email address is not verified.", "not verified", false},
		{"one that may not send as that passes", "DATA.", "550 5.7.60 SMTP; Client does not have permissions to send as this sender", "5.7.60", false},
		{"a quota passes", "DATA.", "550 5.4.5 Daily user sending quota exceeded", "5.4.5", false},
		{"one of two recipients that is busy has the mail wait", "RCPT TO:<dev@example.com>", "450 greylisted", "recipient dev@example.com: 450", false},
		{"no greeting", "", "554 go away", "greeting", false},
	} {
		p := newPost(t, func(p *post) {
			p.auth = "PLAIN"
			p.says[tc.verb] = tc.says
		})
		err := oneMail(t, Options{URL: p.url("smtp", "user:us3r-word")})
		var permanent *sink.PermanentError
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.As(err, &permanent) != tc.permanent {
			t.Errorf("%s: %v, want %q, permanent %v", tc.why, err, tc.want, tc.permanent)
		}
		if strings.Contains(fmt.Sprint(err), "us3r-word") {
			t.Errorf("%s: the password is shown: %v", tc.why, err)
		}
	}
	p := newPost(t, func(p *post) { p.says["EHLO"] = "250-post\n250 SIZE 10" })
	var permanent *sink.PermanentError
	if err := oneMail(t, Options{URL: p.url("smtp", "")}); !errors.As(err, &permanent) || len(p.mails) != 0 {
		t.Errorf("longer than the server takes: %v", err)
	}
}

// TestMailMisses checks that a missing recipient keeps the mail from no other recipient, and that the mail mentions
// it.
func TestMailMisses(t *testing.T) {
	p := newPost(t, func(p *post) { p.says["RCPT TO:<dev@example.com>"] = "550 no such mailbox" })
	if err := oneMail(t, Options{URL: p.url("smtp", "")}); err != nil || len(p.mails) != 1 {
		t.Fatalf("%d mails, %v", len(p.mails), err)
	}
	if _, text := letter(t, p.mails[0]); !strings.Contains(text, "The server refuses this mail for:\ndev@example.com: 550 no such mailbox\n") {
		t.Errorf("the mail does not say whom it missed: %s", text)
	}
}

// TestMailHeadLines checks that no header line exceeds a server's limit, however many recipients there are.
func TestMailHeadLines(t *testing.T) {
	var to []string
	for i := range 60 {
		to = append(to, fmt.Sprintf("somebody-%d@example.com", i))
	}
	p := newPost(t, nil)
	s := must(New("tattler/test", Options{URL: "smtp://" + p.listener.Addr().String() + "/" + strings.Join(to, ",") + "?from=b@example.com"}))(t)
	defer s.Close(t.Context())
	m := sinktest.Messages(0, 1)[0]
	e := *m.Event
	e.Source = "/clusters/" + strings.Repeat("%F0%9F%9A%80", 300)
	m.Event = &e
	if _, err := s.Send(t.Context(), []sink.Message{m}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(p.mails[0], "\r\n") {
		if len(line) > 998 {
			t.Errorf("a line of %d bytes: %.60s…", len(line), line)
		}
	}
	if h, _ := letter(t, p.mails[0]); len(must(h.AddressList("To"))(t)) != len(to) {
		t.Errorf("To: %s", h.Get("To"))
	}
}

// TestMailIsTheSame checks that a repeat has the same Message-ID, and another message a different one.
func TestMailIsTheSame(t *testing.T) {
	p := newPost(t, nil)
	s := must(New("tattler/test", Options{URL: p.url("smtp", "")}))(t)
	defer s.Close(t.Context())
	ms := sinktest.Messages(0, 2)
	for _, m := range []sink.Message{ms[0], ms[0], ms[1]} {
		if _, err := s.Send(t.Context(), []sink.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, m := range p.mails {
		h, _ := letter(t, m)
		ids = append(ids, h.Get("Message-Id"))
	}
	if ids[0] != ids[1] || ids[0] == ids[2] || !strings.HasSuffix(ids[0], "@example.com>") {
		t.Errorf("ids %q", ids)
	}
}

// TestMailHangs checks that a server that does not answer does not block the sink.
func TestMailHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := must(New("tattler/test", Options{URL: "smtp://" + l.Addr().String() + "/a@example.com?from=b@example.com", Timeout: 50 * time.Millisecond}))(t)
	defer s.Close(t.Context())
	if _, err := s.Send(t.Context(), sinktest.Messages(0, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// certificate returns a certificate for 127.0.0.1, and the file of its issuer.
func certificate(t *testing.T) (pair tls.Certificate, ca string) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "post"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key))(t)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca
}
