package notify

import (
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// target is a parsed address.
type target struct {
	service Service
	place   string   // the address without credentials
	post    *url.URL // the URL of a web service
	chat    string   // of Telegram
	thread  string   // of a Telegram chat
	channel string   // of Mattermost, if not the webhook's default
	mail    mailTarget
	raw     string // the URL for shoutrrr
	plain   string // the host, if shoutrrr sends without TLS

	insecure bool // the address allows credentials without TLS
}

// clearText returns an error if a mail server's password, or a webhook's path, would be sent in clear text.
func (t target) clearText(insecure bool) error {
	switch {
	case t.service == email && t.mail.tls == "none" && t.mail.user != "":
		return sink.ClearText(insecure || t.insecure, "the password", "tls=auto, tls=always or smtps://", t.mail.host)
	case t.post != nil && t.post.Scheme == "http":
		return sink.ClearText(insecure || t.insecure, "the path, which is a credential,", "TLS", t.post.Hostname())
	case t.plain != "":
		return sink.ClearText(insecure, "the address, which is a credential,", "TLS", t.plain)
	}
	return nil
}

// tls reports whether the sink itself may use TLS for the target.
func (t target) tls() bool {
	return t.service == email && t.mail.tls != "none" || t.post != nil && t.post.Scheme == "https"
}

var errURL = errors.New("url: not a URL (not shown: it may contain a credential)")

// parseTarget parses an address. Its errors name the key, and show only the scheme of the address.
func parseTarget(address string, service Service) (target, error) {
	if address == "" {
		return target{}, errors.New("url: missing")
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return target{}, errURL
	}
	t := target{service: Service(u.Scheme)}
	web := u.Scheme == "http" || u.Scheme == "https"
	if service != "" && !web {
		return t, errors.New("service: only for a url that begins with https:// or http://; other schemes name the service")
	}
	switch {
	case web:
		err = t.web(u, service)
	case u.Scheme == "slack":
		err = t.slack(u, address)
	case u.Scheme == "teams":
		t.post, err = withHTTPS(u)
	case u.Scheme == "discord":
		err = t.discord(u)
	case u.Scheme == "mattermost":
		err = t.mattermost(u)
	case u.Scheme == "telegram":
		err = t.telegram(u)
	case u.Scheme == "smtp" || u.Scheme == "smtps":
		t.service = email
		t.mail, err = parseMail(u)
		t.insecure = u.Query().Get("insecure") == "true"
		t.place = "smtp " + t.mail.address
	default:
		err = t.shoutrrr(u, address)
	}
	if err != nil {
		return t, fmt.Errorf("url: %w", err)
	}
	if t.service == Discord { // otherwise it answers before it stores the message, and reports no failure
		post := *t.post
		q := post.Query()
		q.Set("wait", "true")
		post.RawQuery = q.Encode()
		t.post = &post
	}
	if strings.Trim(t.thread, "0123456789") != "" || strings.HasPrefix(t.thread, "0") {
		return t, errors.New("url: the thread of a chat must be a number")
	}
	if t.post != nil {
		t.place = string(t.service) + " " + t.post.Scheme + "://" + t.post.Host
	}
	return t, nil
}

// Identity returns the part of an address that identifies the destination: the webhook, the chat or the recipients,
// but no bot token and no password, because these may be renewed. Hash it: for a webhook it is a credential.
func Identity(address string) string {
	t, err := parseTarget(address, "")
	if err != nil {
		return address
	}
	switch t.service {
	case email:
		return fmt.Sprint(t.mail.user, "@", t.mail.address, t.mail.to)
	case Telegram:
		bot, _, _ := strings.Cut(t.post.Path, ":")
		return fmt.Sprintln(bot, t.chat, t.thread)
	case others:
		u, err := url.Parse(address)
		if err != nil {
			return address
		}
		u.User = nil
		return u.String()
	}
	return fmt.Sprintln(t.post, t.channel)
}

// ofHost returns the service with this URL's host, or an empty text.
func ofHost(u *url.URL) Service {
	host := strings.ToLower(u.Hostname())
	under := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	switch {
	case host == "hooks.slack.com" || host == "hooks.slack-gov.com":
		return Slack
	case (under("discord.com") || under("discordapp.com")) && strings.HasPrefix(u.Path, "/api/"):
		return Discord
	case under("webhook.office.com"), under("logic.azure.com"), under("powerplatform.com"):
		return Teams
	case host == "api.telegram.org":
		return Telegram
	}
	return ""
}

// Takes reports whether a web address is one that a chat service hands out.
func Takes(u *url.URL) bool { return ofHost(u) != "" }

func (t *target) web(u *url.URL, service Service) error {
	if u.Host == "" {
		return errors.New("no host")
	}
	if service == "" {
		service = ofHost(u)
	}
	if service == "" {
		return errors.New("it does not show which service this is: set service, or use the sink webhook for other receivers")
	}
	t.service, t.post = service, u
	if service == Telegram {
		// The form in Telegram's own documentation: https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT
		q, err := query(u, "chat_id", "message_thread_id")
		if err != nil {
			return err
		}
		if q["chat_id"] == "" {
			return errors.New("?chat_id= must name the chat")
		}
		post := *u
		post.RawQuery = ""
		if !strings.HasSuffix(post.Path, "/sendMessage") {
			post = *post.JoinPath("sendMessage")
		}
		t.post, t.chat, t.thread = &post, q["chat_id"], q["message_thread_id"]
	}
	return nil
}

// withHTTPS replaces the scheme of an address by https.
func withHTTPS(u *url.URL) (*url.URL, error) {
	if u.Host == "" || u.User != nil || u.Path == "" {
		return nil, fmt.Errorf("want %s:// and what follows https:// in the URL that the service hands out", u.Scheme)
	}
	post := *u
	post.Scheme = "https"
	return &post, nil
}

// slack parses slack://hooks.slack.com/services/T/B/X and shoutrrr's slack://hook:T-B-X@webhook. It leaves an address
// with a bot token to shoutrrr.
func (t *target) slack(u *url.URL, address string) error {
	token, ok := u.User.Password()
	switch {
	case ok && u.User.Username() == "hook":
		parts := strings.Split(token, "-")
		if len(parts) != 3 {
			return errors.New("want slack://hook:T…-B…-…@webhook, the three parts of the webhook's path")
		}
		t.post = (&url.URL{Scheme: "https", Host: "hooks.slack.com"}).JoinPath("services", parts[0], parts[1], parts[2])
		return nil
	case ok && u.Host == "": // as in slack://TOKEN@#CHANNEL
		return errors.New("want slack://TOKEN@CHANNEL, without # before the channel")
	case ok:
		return t.shoutrrr(u, address)
	}
	post, err := withHTTPS(u)
	t.post = post
	return err
}

// discord parses discord://TOKEN@ID, with ?thread_id= for a thread.
func (t *target) discord(u *url.URL) error {
	q, err := query(u, "thread_id")
	if err != nil {
		return err
	}
	if u.User.Username() == "" || u.Host == "" {
		return errors.New("want discord://TOKEN@ID, or the webhook's URL as Discord hands it out")
	}
	t.post = (&url.URL{Scheme: "https", Host: "discord.com"}).JoinPath("api", "webhooks", u.Host, u.User.Username())
	if q["thread_id"] != "" {
		t.post.RawQuery = url.Values{"thread_id": {q["thread_id"]}}.Encode()
	}
	return nil
}

// mattermost parses mattermost://HOST/TOKEN and mattermost://HOST/TOKEN/CHANNEL.
func (t *target) mattermost(u *url.URL) error {
	q, err := query(u, "disabletls", "insecure")
	if err != nil {
		return err
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if u.Host == "" || parts[0] == "" || len(parts) > 2 {
		return errors.New("want mattermost://HOST/TOKEN or mattermost://HOST/TOKEN/CHANNEL")
	}
	if len(parts) == 2 {
		t.channel = parts[1]
	}
	t.post = (&url.URL{Scheme: "https", Host: u.Host}).JoinPath("hooks", parts[0])
	if q["disabletls"] == "yes" || q["disabletls"] == "true" {
		t.post.Scheme = "http"
	}
	t.insecure = q["insecure"] == "true"
	return nil
}

// telegram parses telegram://BOT:TOKEN@CHAT and shoutrrr's telegram://BOT:TOKEN@telegram?chats=CHAT.
func (t *target) telegram(u *url.URL) error {
	q, err := query(u, "chats", "thread")
	if err != nil {
		return err
	}
	token, ok := u.User.Password()
	t.chat, t.thread = u.Host, q["thread"]
	if u.Host == "telegram" {
		t.chat = q["chats"]
	}
	switch {
	case !ok || token == "" || t.chat == "":
		return errors.New("want telegram://BOT:TOKEN@CHAT, where CHAT is a number or the name of a channel")
	case strings.Contains(t.chat, ","):
		return errors.New("several chats: configure one sink for each, so that a failure in one does not repeat messages in the others")
	}
	if t.chat[0] != '-' && t.chat[0] != '@' && (t.chat[0] < '0' || t.chat[0] > '9') {
		t.chat = "@" + t.chat
	}
	t.post = &url.URL{Scheme: "https", Host: "api.telegram.org", Path: "/bot" + u.User.Username() + ":" + token + "/sendMessage"}
	return nil
}

// query returns the query keys of an address, and an error for an unknown key.
func query(u *url.URL, known ...string) (map[string]string, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("invalid query")
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("%s: unknown key %q; known are %s", u.Scheme, key, strings.Join(known, ", "))
		}
		out[key] = strings.Join(values[key], ",")
	}
	return out, nil
}

// mailTarget is a mail server and the recipients.
type mailTarget struct {
	address        string // host:port
	host           string
	user, password string
	tls            string // auto, always, none; implicit for smtps
	from           *mail.Address
	to             []*mail.Address
}

// parseMail parses smtp://USER:PASSWORD@HOST:PORT/TO,TO?from=FROM; smtps uses TLS from the start.
func parseMail(u *url.URL) (m mailTarget, err error) {
	q, err := query(u, "from", "to", "tls", "insecure", "fromaddress", "toaddresses")
	if err != nil {
		return m, err
	}
	port := u.Port()
	m.host, m.user, m.tls = u.Hostname(), u.User.Username(), "auto"
	m.password, _ = u.User.Password()
	switch {
	case m.host == "":
		return m, errors.New("want smtp://USER:PASSWORD@HOST:PORT/TO?from=FROM")
	case u.Scheme == "smtps" && q["tls"] != "":
		return m, errors.New("tls: smtps uses TLS from the start")
	case u.Scheme == "smtps":
		m.tls = "implicit"
	case q["tls"] != "" && !slices.Contains([]string{"auto", "always", "none"}, q["tls"]):
		return m, errors.New("tls: want auto, always or none")
	case q["tls"] != "":
		m.tls = q["tls"]
	}
	if port == "" {
		port = map[bool]string{true: "465", false: "587"}[u.Scheme == "smtps"]
	}
	m.address = m.host + ":" + port
	if strings.Contains(m.host, ":") {
		m.address = "[" + m.host + "]:" + port
	}
	if m.from, err = mail.ParseAddress(q["from"] + q["fromaddress"]); err != nil {
		return m, errors.New("?from= must be the sender's address (write a + in it as %2B)")
	}
	to := strings.Trim(strings.Join([]string{strings.Trim(u.Path, "/"), q["to"], q["toaddresses"]}, ","), ",")
	if m.to, err = mail.ParseAddressList(to); err != nil {
		return m, errors.New("the path must contain the recipients: /ops@example.com,dev@example.com?from=… (write a + in ?to= as %2B)")
	}
	return m, nil
}
