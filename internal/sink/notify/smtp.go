package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/smtp"
	"net/textproto"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// mailer sends mails, each by a connection of its own: servers close those that wait for the next one.
type mailer struct {
	mailTarget
	tls      *tls.Config
	insecure bool // the password may go without TLS
}

func (m *mailer) send(ctx context.Context, what *Message, text, agent string) error {
	now := time.Now()
	compose := func(missed []string) ([]byte, error) {
		body, err := m.compose(what, text, agent, missed, now)
		if err != nil {
			return nil, &sink.PermanentError{Err: fmt.Errorf("make the mail: %w", err)}
		}
		return body, nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	raw := conn
	defer context.AfterFunc(ctx, func() { raw.Close() })() // what is being read or written ends with ctx
	if m.mailTarget.tls == "implicit" {
		conn = tls.Client(conn, m.config())
	}
	if err := m.talk(conn, compose); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return nil
}

func (m *mailer) config() *tls.Config {
	c := m.tls.Clone()
	if c.ServerName == "" {
		c.ServerName = m.host
	}
	return c
}

// talk hands a mail over. What the server says of the sender, the recipients and the login passes: it would
// say so of every mail. A recipient of several whom it does not know keeps the mail from nobody else: it says
// whom it missed.
func (m *mailer) talk(conn net.Conn, compose func(missed []string) ([]byte, error)) error {
	c, err := smtp.NewClient(conn, m.host)
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	if name, err := os.Hostname(); err == nil && name != "" && !strings.ContainsAny(name, " \r\n") {
		if err := c.Hello(name); err != nil {
			return fmt.Errorf("hello: %w", err)
		}
	}
	if err := m.secure(c); err != nil {
		return err
	}
	if m.user != "" {
		if err := c.Auth(m.auth(c)); err != nil {
			return fmt.Errorf("log in as %s: %w", m.user, err)
		}
	}
	if err := c.Mail(m.from.Address); err != nil {
		return fmt.Errorf("sender %s: %w", m.from.Address, err)
	}
	missed, err := m.recipients(c)
	if err != nil {
		return err
	}
	body, err := compose(missed)
	if err != nil {
		return err
	}
	if size, err := strconv.Atoi(extension(c, "SIZE")); err == nil && size > 0 && len(body) > size {
		return &sink.PermanentError{Err: fmt.Errorf("the mail has %d bytes, the server takes %d", len(body), size)}
	}
	w, err := c.Data()
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	if err := w.Close(); err != nil {
		var said *textproto.Error
		if errors.As(err, &said) && blames(said) {
			return &sink.PermanentError{Err: fmt.Errorf("the server does not take the mail: %w", err)}
		}
		return fmt.Errorf("data: %w", err)
	}
	_ = c.Quit() // it has the mail
	return nil
}

// recipients tells the server whom to write, and returns those that it refuses for good. That it takes nobody
// is an error.
func (m *mailer) recipients(c *smtp.Client) (missed []string, err error) {
	var first error
	for _, to := range m.to {
		err := c.Rcpt(to.Address)
		if err == nil {
			continue
		}
		var said *textproto.Error
		text := fmt.Errorf("recipient %s: %w", to.Address, err)
		if !errors.As(err, &said) || said.Code/100 != 5 {
			return nil, text
		}
		missed = append(missed, fmt.Sprintf("%s: %d %s", to.Address, said.Code, clean(cut(said.Msg, maxPath))))
		if first == nil {
			first = text
		}
	}
	if len(missed) == len(m.to) {
		return nil, first
	}
	return missed, nil
}

// account is what servers say after a mail's data of who sends it: they would say so of every mail.
var account = regexp.MustCompile(`(?i)^5\.[1347]\.|not verified|verify your|send ?as|not authorized|not allowed|denied|authenticat|permission|relay|quota|limit|dmarc|\bspf\b|dkim|suspend|disabled|paused|blocked`)

// content is what they say of a mail.
var content = regexp.MustCompile(`(?i)^5\.(2\.3|3\.4|6\.)|spam|unsolicited|virus|malware|phish|content|too (large|long|big)|size`)

// blames tells whether an answer to a mail's data is about the mail.
func blames(said *textproto.Error) bool {
	switch {
	case said.Code/100 != 5:
		return false
	case said.Code == 552:
		return true
	}
	return content.MatchString(said.Msg) || !account.MatchString(said.Msg)
}

func extension(c *smtp.Client, name string) string {
	_, parameter := c.Extension(name)
	return parameter
}

// secure begins TLS as the options have it. A password is not sent without TLS to another machine, unless the
// options allow it.
func (m *mailer) secure(c *smtp.Client) error {
	offered, _ := c.Extension("STARTTLS")
	switch {
	case m.mailTarget.tls == "implicit":
		return nil
	case m.mailTarget.tls != "none" && offered:
		if err := c.StartTLS(m.config()); err != nil {
			return fmt.Errorf("begin TLS: %w", err)
		}
		return nil
	case m.mailTarget.tls == "always":
		return errors.New("the server offers no STARTTLS, and tls=always asks for it")
	case m.user != "":
		if err := sink.ClearText(m.insecure, "the password", "smtps, or a server that has STARTTLS", m.host); err != nil {
			return fmt.Errorf("the server offers no TLS: %w", err)
		}
	}
	return nil
}

// auth is the way to log in that the server offers: PLAIN, or else LOGIN.
func (m *mailer) auth(c *smtp.Client) smtp.Auth {
	if ways := strings.Fields(extension(c, "AUTH")); len(ways) > 0 && !contains(ways, "PLAIN") && contains(ways, "LOGIN") {
		return login{m.user, m.password}
	}
	return plain{m.user, m.password}
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// plain is RFC 4616. That the connection is safe was seen to before.
type plain struct{ user, password string }

func (a plain) Start(*smtp.ServerInfo) (string, []byte, error) {
	return "PLAIN", []byte("\x00" + a.user + "\x00" + a.password), nil
}

func (a plain) Next(_ []byte, more bool) ([]byte, error) {
	if more {
		return nil, errors.New("the server asks for more than PLAIN has")
	}
	return nil, nil
}

// login is what servers of Microsoft ask for.
type login struct{ user, password string }

func (a login) Start(*smtp.ServerInfo) (string, []byte, error) { return "LOGIN", nil, nil }

func (a login) Next(said []byte, more bool) ([]byte, error) {
	switch question := strings.ToLower(string(said)); {
	case !more:
		return nil, nil
	case strings.HasPrefix(question, "user"):
		return []byte(a.user), nil
	case strings.HasPrefix(question, "pass"):
		return []byte(a.password), nil
	}
	return nil, errors.New("the server asks what LOGIN does not know")
}

// compose writes the mail. The same changes have the same Message-ID, so that a mail that comes again can be
// told.
func (m *mailer) compose(what *Message, text, agent string, missed []string, now time.Time) ([]byte, error) {
	var b bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, value) }
	var to []string
	for _, a := range m.to {
		to = append(to, a.String())
	}
	sum := sha256.Sum256([]byte(what.key + m.from.Address + strings.Join(to, ",")))
	_, domain, _ := strings.Cut(m.from.Address, "@")
	header("From", m.from.String())
	header("To", strings.Join(to, ",\r\n "))
	header("Subject", strings.ReplaceAll(mime.QEncoding.Encode("utf-8", cut(what.Title, maxTitle)), "?= =?", "?=\r\n =?"))
	header("Date", now.Format(time.RFC1123Z))
	header("Message-ID", "<"+hex.EncodeToString(sum[:16])+"@"+domain+">")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	header("Auto-Submitted", "auto-generated") // so that nobody's absence note answers
	header("User-Agent", agent)
	b.WriteString("\r\n")
	full := what.icon() + " " + what.Title + "\n"
	if what.Link != "" {
		full += what.Link + "\n"
	}
	full += "\n" + text + "\n"
	if len(missed) > 0 {
		full += "\nThe server does not take this for:\n" + strings.Join(missed, "\n") + "\n"
	}
	w := quotedprintable.NewWriter(&b)
	if _, err := w.Write([]byte(strings.ReplaceAll(full, "\n", "\r\n"))); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
