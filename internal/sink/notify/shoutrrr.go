package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Schemes returns the schemes of addresses that a notify sink takes besides the URLs that Takes claims.
func Schemes() []string {
	all := []string{"slack", "teams", "discord", "mattermost", "telegram", "smtp", "smtps", "generic+http", "generic+https"}
	for _, scheme := range (&router.ServiceRouter{}).ListServices() {
		if scheme != "logger" && !slices.Contains(all, scheme) { // the logger notifies no one
			all = append(all, scheme)
		}
	}
	slices.Sort(all)
	return all
}

// shoutrrr parses the address of a service that only shoutrrr supports.
func (t *target) shoutrrr(u *url.URL, address string) error {
	if !slices.Contains(Schemes(), u.Scheme) {
		return fmt.Errorf("the scheme %s is not one of %s", u.Scheme, strings.Join(Schemes(), ", "))
	}
	scheme, _, _ := strings.Cut(u.Scheme, "+")
	t.service, t.raw = others, address
	if withoutTLS(u) {
		t.plain = u.Hostname()
	}
	t.place = scheme
	if slices.Contains(hosted, scheme) && u.User == nil && strings.Trim(u.Path, "/") != "" {
		t.place += " " + u.Hostname()
	}
	if scheme == "matrix" { // Locate would log in
		return nil
	}
	if _, err := (&router.ServiceRouter{}).Locate(address); err != nil {
		return fmt.Errorf("shoutrrr rejects it as a %s address: see its documentation for the form", scheme) // its error may quote the address
	}
	return nil
}

// withoutTLS reports whether shoutrrr sends to an address without TLS.
func withoutTLS(u *url.URL) bool {
	if strings.HasSuffix(u.Scheme, "+http") {
		return true
	}
	for key, values := range u.Query() {
		value := strings.ToLower(strings.Join(values, ","))
		switch strings.ToLower(key) {
		case "disabletls":
			if slices.Contains([]string{"true", "1", "yes", "y"}, value) { // like shoutrrr's format.ParseBool
				return true
			}
		case "scheme":
			if value == "http" {
				return true
			}
		}
	}
	return false
}

// hosted lists services whose addresses have a host where others have a token. Without a path, it may be a token
// here, too.
var hosted = []string{"bark", "generic", "googlechat", "gotify", "lark", "matrix", "ntfy", "opsgenie", "pagerduty", "rocketchat", "signal"}

// shout sends through shoutrrr, which does not support contexts. A call that hangs is left running, and nothing else
// is sent until it ends.
type shout struct {
	address string
	service types.Service
	pending chan error // of a call that was left running
	said    string     // its text
	titled  bool
}

// titled lists the services with a separate title.
var titled = []string{"ntfy", "gotify", "pushover", "pushbullet", "bark", "join"}

func newShout(t target) *shout {
	scheme, _, _ := strings.Cut(t.raw, ":")
	return &shout{address: t.raw, titled: slices.Contains(titled, scheme)}
}

// refusal matches shoutrrr's errors for a message that a service will never take. The status 400 or 422 alone does
// not count: services also answer so to a wrong token, and an error of every message must not set all of them aside.
var refusal = regexp.MustCompile(`(?i)\b413\b|\b(400|422)\b.*(too long|too large|too big|length|longer|exceed|maximum|characters)`)

func (s *shout) send(ctx context.Context, title, text string) error {
	if s.pending != nil {
		select {
		case err := <-s.pending:
			s.pending = nil
			if err == nil && s.said == title+"\n"+text { // it arrived after all
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("the previous message is still being sent: %w", ctx.Err())
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- s.call(title, text) }()
	select {
	case err := <-done:
		if err != nil && refusal.MatchString(err.Error()) {
			return &sink.PermanentError{Err: err}
		}
		return err
	case <-ctx.Done():
		s.pending, s.said = done, title+"\n"+text
		return ctx.Err()
	}
}

func (s *shout) call(title, text string) (err error) {
	defer func() {
		if r := recover(); r != nil { // in a service that we have not tested
			err = errors.New("shoutrrr cannot send it")
		}
	}()
	if s.service == nil {
		service, err := (&router.ServiceRouter{}).Locate(s.address)
		if err != nil {
			return err
		}
		s.service = service
	}
	params := &types.Params{}
	if s.titled {
		params.SetTitle(title)
	} else if text = strings.TrimSpace(title + "\n" + text); text == "" {
		text = title
	}
	if text == "" {
		text = title
	}
	return s.service.Send(text, params)
}
