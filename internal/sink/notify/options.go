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

// DefaultWindow is how long messages are collected where nobody says how long.
const DefaultWindow = 10 * time.Second

// Options are the keys of a notify sink. A Window of 0 is no default: each change is a message by itself.
type Options struct {
	// URL is where messages go: the webhook's URL as Slack, Teams or Discord hand it out, or one of the forms
	// of docs/sinks/notify.md, such as mattermost://host/TOKEN, telegram://BOT:TOKEN@CHAT or
	// smtp://user:password@host:587/ops@example.com. It is a credential.
	URL string `yaml:"url"`
	// Service names the chat service: slack, teams, discord, mattermost or telegram, where URL begins with https:// or http://
	// and is not of the service's own host (what the URL says).
	Service Service `yaml:"service"`
	// BaseURL is where a page shows changes; messages then link to BASEURL/changes/ID (none: no links). Tattler's
	// own page is still to come.
	BaseURL string `yaml:"baseURL"`
	// Template makes the text below the title: a text/template over a Message, in the service's markup by the
	// functions bold, code, link and icon; what else it prints is escaped (a list of the changes).
	Template string `yaml:"template"`
	// Window is how long changes are collected for one message, from the first on (10 seconds); 0s makes
	// each change a message.
	Window time.Duration `yaml:"window"`
	// Digest is a time of day, such as 08:00, at which one message tells of the day before (none).
	Digest Clock `yaml:"digest"`
	// QuietHours are hours of each day in which nothing is sent; what happens is told at their end (none).
	QuietHours QuietHours `yaml:"quietHours"`
	// Timezone is where Digest and QuietHours are meant, such as Europe/Berlin (the process's own).
	Timezone string `yaml:"timezone"`
	// Timeout bounds one request, or one mail (10 seconds).
	Timeout time.Duration `yaml:"timeout"`
	// Insecure allows a password to be sent to a mail server, and a webhook's URL to a chat service, without TLS to
	// another machine (false).
	Insecure bool `yaml:"insecure"`
	// TLS is for all services but those that shoutrrr sends to.
	TLS sink.TLS `yaml:"tls"`
}

// QuietHours are hours of each day. They may pass midnight.
type QuietHours struct {
	// From is when they begin, such as 22:00.
	From Clock `yaml:"from"`
	// To is when they end, such as 07:00.
	To Clock `yaml:"to"`
}

// Service is a chat service that is told from others by the form of its messages.
type Service string

// The services whose webhooks Tattler speaks to itself. Others are shoutrrr's.
const (
	Slack      Service = "slack"
	Teams      Service = "teams"
	Discord    Service = "discord"
	Mattermost Service = "mattermost"
	Telegram   Service = "telegram"
)

// What is no option.
var (
	email  = Service("smtp")
	others = Service("shoutrrr")
)

var webServices = []Service{Slack, Teams, Discord, Mattermost, Telegram}

// Validate says what is wrong with the options, naming the key, and showing no credential.
func (o Options) Validate() error {
	if o.Service != "" && !slices.Contains(webServices, o.Service) {
		return fmt.Errorf("service: %q is none of slack, teams, discord, mattermost, telegram", o.Service)
	}
	t, err := parseTarget(o.URL, o.Service)
	if err != nil {
		return err
	}
	if o.BaseURL != "" {
		u, err := url.Parse(o.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return errors.New("baseURL: must begin with https:// or http:// and a host, and have neither user nor query")
		}
	}
	if _, err := parseTemplate(o.Template, markups[t.service]); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	switch {
	case o.Window < 0:
		return errors.New("window: not negative")
	case o.Timeout < 0:
		return errors.New("timeout: not negative")
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
		return errors.New("tls: this url does not use it, or shoutrrr does, which has keys of its own for that")
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

// link is where a change is shown; empty where there is no page.
func (o Options) link(id string) string {
	if o.BaseURL == "" || id == "" {
		return ""
	}
	return strings.TrimSuffix(o.BaseURL, "/") + "/changes/" + id
}
