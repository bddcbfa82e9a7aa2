package kinds_test

import (
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/sink/notify"
)

// TestNotifyTakes checks that URLs of chat services are recognized, and never shown.
func TestNotifyTakes(t *testing.T) {
	p := kinds.Tattler()
	loader := config.Loader{Sinks: p.Types()}
	names := map[string]bool{}
	for address, want := range map[string]string{
		"https://hooks.slack.com/services/T/B/w0rdw0rd":                       "notify",
		"https://discord.com/api/webhooks/1/w0rdw0rd":                         "notify",
		"https://x.webhook.office.com/webhookb2/w0rdw0rd":                     "notify",
		"https://prod-1.westeurope.logic.azure.com/workflows/1?sig=w0rdw0rd":  "notify",
		"https://example.com/w0rdw0rd":                                        "webhook",
		"discord://w0rdw0rd@2":                                                "notify",
		"telegram://1:w0rdw0rd@-100":                                          "notify",
		"smtp://u:w0rdw0rd@mail.example.com/a@example.com?from=b@example.com": "notify",
		"smtp://u:w0rdw0rd@mail.example.com/c@example.com?from=b@example.com": "notify",
	} {
		s, err := loader.SinkFromURL(address)
		if err != nil || s.Type != want {
			t.Errorf("%s is a %s, %v; want %s", address, s.Type, err, want)
			continue
		}
		if names[s.Name] {
			t.Errorf("%s has the name of another", address)
		}
		names[s.Name] = true
		if o, ok := s.Options.(*notify.Options); ok && o.Window != notify.DefaultWindow {
			t.Errorf("%s: window %s", address, o.Window)
		}
		made, err := p.Make(&s, kinds.Env{Agent: "tattler/test"})
		if err != nil || strings.Contains(made.String(), "w0rd") {
			t.Errorf("%s: %v, %v", address, made, err)
		}
	}
	for _, address := range []string{"discord://w0rdw0rd", "telegram://w0rdw0rd@x", "https://api.telegram.org/bot1:w0rdw0rd", "pushover://w0rdw0rd"} {
		if _, err := loader.SinkFromURL(address); err == nil || strings.Contains(err.Error(), "w0rd") {
			t.Errorf("%v", err)
		}
	}
	if o, ok := p.Types()[len(p.Types())-1].New().(*notify.Options); ok && o.Window != notify.DefaultWindow {
		t.Errorf("a file that says nothing has the window %s", o.Window)
	}
}
