package notify

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// DefaultWindow is the window of an address for --to, and of a configuration that sets none.
const DefaultWindow = 10 * time.Second

// Options are the options of a notify sink. A Window of 0 is not replaced by a default: it sends each change by
// itself.
type Options struct {
	// URL is the destination: the webhook URL from Slack, Teams or Discord, or one of the forms in
	// docs/sinks/notify.md, such as mattermost://host/TOKEN, telegram://BOT:TOKEN@CHAT or
	// smtp://user:password@host:587/ops@example.com. It is a credential.
	URL string `yaml:"url"`
	// Service names the chat service: slack, teams, discord, mattermost or telegram. Set it if url begins with
	// https:// or http:// and its host is not the service's own. Default: derived from the URL.
	Service Service `yaml:"service"`
	// BaseURL is the URL of a page that shows changes, such as Tattler's web page; messages then link to
	// BASEURL/changes/ID.
	BaseURL string `yaml:"baseURL"`
	// Template is a text/template for the text below the title; docs/sinks/notify.md lists its fields. Its functions
	// bold, code, link and icon format text in the service's markup; other output is escaped. Default: a list of the
	// changes.
	Template string `yaml:"template"`
	// Window is how long changes are collected for one message, from the first change on; 0s sends each change in its
	// own message. Default: 10s.
	Window time.Duration `yaml:"window"`
	// Digest is a time of day, such as 08:00, at which one message sums up the changes since the last digest.
	Digest Clock `yaml:"digest"`
	// QuietHours are hours of each day in which nothing is sent; at their end, one message sums up their changes.
	QuietHours QuietHours `yaml:"quietHours"`
	// Timezone is the time zone of digest and quietHours, such as Europe/Berlin. Default: the process's time zone.
	Timezone string `yaml:"timezone"`
	// Timeout bounds one request, or one mail. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows a mail server's password, or a chat service's webhook URL, to be sent without TLS to another
	// machine.
	Insecure bool `yaml:"insecure"`
	// TLS applies to all services except those that shoutrrr sends to.
	TLS sink.TLS `yaml:"tls"`
}

// QuietHours are hours of each day. They may span midnight.
type QuietHours struct {
	// From is the time at which the quiet hours begin, such as 22:00.
	From Clock `yaml:"from"`
	// To is the time at which the quiet hours end, such as 07:00.
	To Clock `yaml:"to"`
}

// Service is a chat service with its own form of messages.
type Service string

// The services whose webhooks the sink supports directly. shoutrrr supports others.
const (
	Slack      Service = "slack"
	Teams      Service = "teams"
	Discord    Service = "discord"
	Mattermost Service = "mattermost"
	Telegram   Service = "telegram"
)

// Services that the option cannot name.
var (
	email  = Service("smtp")
	others = Service("shoutrrr")
)

var webServices = []Service{Slack, Teams, Discord, Mattermost, Telegram}

// Validate returns an error that names the wrong key and shows no credential.
func (o Options) Validate() error {
	if o.Service != "" && !slices.Contains(webServices, o.Service) {
		return fmt.Errorf("service: %q is not one of slack, teams, discord, mattermost, telegram", o.Service)
	}
	t, err := parseTarget(o.URL, o.Service)
	if err != nil {
		return err
	}
	if o.BaseURL != "" {
		u, err := url.Parse(o.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return errors.New("baseURL: must begin with https:// or http:// and a host, without a user or a query")
		}
	}
	if _, err := parseTemplate(o.Template, markups[t.service]); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	switch {
	case o.Window < 0:
		return errors.New("window: must not be negative")
	case o.Timeout < 0:
		return errors.New("timeout: must not be negative")
	case (o.QuietHours.From == "") != (o.QuietHours.To == ""):
		return errors.New("quietHours: from and to belong together")
	case o.QuietHours.From != "" && o.QuietHours.From == o.QuietHours.To:
		return errors.New("quietHours: from and to are the same time")
	}
	if err := o.Digest.validate(); err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	if err := cmp.Or(o.QuietHours.From.validate(), o.QuietHours.To.validate()); err != nil {
		return fmt.Errorf("quietHours: %w", err)
	}
	if _, err := o.location(); err != nil {
		return fmt.Errorf("timezone: %w", err)
	}
	if o.TLS != (sink.TLS{}) && !t.tls() {
		return errors.New("tls: this url does not use it, or shoutrrr does, which has its own keys for it")
	}
	if err := o.TLS.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if err := t.clearText(o.Insecure); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	return nil
}

func (o Options) location() (*time.Location, error) {
	if o.Timezone == "" {
		return time.Local, nil
	}
	l, err := time.LoadLocation(o.Timezone)
	if err != nil {
		return nil, fmt.Errorf("%q is not a zone such as Europe/Berlin", o.Timezone)
	}
	return l, nil
}

// link returns the URL that shows a change, or an empty text without a base URL.
func (o Options) link(id string) string {
	if o.BaseURL == "" || id == "" {
		return ""
	}
	return strings.TrimSuffix(o.BaseURL, "/") + "/changes/" + id
}
