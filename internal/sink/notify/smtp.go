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

// mailer sends mails, each over a new connection: servers close idle ones.
type mailer struct {
	mailTarget
	tls      *tls.Config
	insecure bool // the password may be sent without TLS
}

func (m *mailer) send(ctx context.Context, what *Message, text, agent string) error {
	now := time.Now()
	compose := func(missed []string) ([]byte, error) {
		body, err := m.compose(what, text, agent, missed, now)
		if err != nil {
			return nil, &sink.PermanentError{Err: fmt.Errorf("compose the mail: %w", err)}
		}
		return body, nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	raw := conn
	defer context.AfterFunc(ctx, func() { raw.Close() })() // the end of ctx interrupts reads and writes
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

// talk delivers a mail. Errors about the sender, the recipients and the login are temporary: every mail would get
// them. If the server does not know some of several recipients, the others get the mail, which lists the missing
// ones.
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
	if err := m.startTLS(c); err != nil {
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
		return &sink.PermanentError{Err: fmt.Errorf("the mail has %d bytes, which exceeds the server's limit of %d", len(body), size)}
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
		if errors.As(err, &said) && blamesMail(said) {
			return &sink.PermanentError{Err: fmt.Errorf("the server refuses the mail: %w", err)}
		}
		return fmt.Errorf("data: %w", err)
	}
	_ = c.Quit() // the server has the mail
	return nil
}

// recipients names the recipients to the server, and returns those that it refuses for good. It returns an error if
// the server refuses all of them.
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

// account matches answers to a mail's data that are about the sender's account: every mail would get them.
var account = regexp.MustCompile(`(?i)^5\.[1347]\.|not verified|verify your|send ?as|not authorized|not allowed|denied|authenticat|permission|relay|quota|limit|dmarc|\bspf\b|dkim|suspend|disabled|paused|blocked`)

// content matches answers that are about the mail.
var content = regexp.MustCompile(`(?i)^5\.(2\.3|3\.4|6\.)|spam|unsolicited|virus|malware|phish|content|too (large|long|big)|size`)

// blamesMail reports whether an answer to a mail's data is about the mail.
func blamesMail(said *textproto.Error) bool {
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

// startTLS starts TLS according to the options. It returns an error if a password would be sent without TLS to
// another machine, unless the options allow that.
func (m *mailer) startTLS(c *smtp.Client) error {
	offered, _ := c.Extension("STARTTLS")
	switch {
	case m.mailTarget.tls == "implicit":
		return nil
	case m.mailTarget.tls != "none" && offered:
		if err := c.StartTLS(m.config()); err != nil {
			return fmt.Errorf("start TLS: %w", err)
		}
		return nil
	case m.mailTarget.tls == "always":
		return errors.New("the server does not offer STARTTLS, which tls=always requires")
	case m.user != "":
		if err := sink.ClearText(m.insecure, "the password", "smtps, or a server with STARTTLS", m.host); err != nil {
			return fmt.Errorf("the server does not offer TLS: %w", err)
		}
	}
	return nil
}

// auth returns PLAIN, or LOGIN if the server offers only that.
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

// plain is RFC 4616. The caller has checked that the connection is safe.
type plain struct{ user, password string }

func (a plain) Start(*smtp.ServerInfo) (string, []byte, error) {
	return "PLAIN", []byte("\x00" + a.user + "\x00" + a.password), nil
}

func (a plain) Next(_ []byte, more bool) ([]byte, error) {
	if more {
		return nil, errors.New("the server asks for more than PLAIN provides")
	}
	return nil, nil
}

// login is LOGIN, which Microsoft's servers use.
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
	return nil, errors.New("the server asks for something unknown to LOGIN")
}

// compose writes the mail. The same changes get the same Message-ID, so that a repeat can be recognized.
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
	header("Auto-Submitted", "auto-generated") // so that no absence note is sent back
	header("User-Agent", agent)
	b.WriteString("\r\n")
	full := what.icon() + " " + what.Title + "\n"
	if what.Link != "" {
		full += what.Link + "\n"
	}
	full += "\n" + text + "\n"
	if len(missed) > 0 {
		full += "\nThe server refuses this mail for:\n" + strings.Join(missed, "\n") + "\n"
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
