package notify

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
)

// w0rd stands for the credential in every address below.
const w0rd = "w0rdw0rdw0rd"

func TestAddresses(t *testing.T) {
	for _, tc := range []struct{ why, address, service, place, post, rest string }{
		{"as Slack hands it out", "https://hooks.slack.com/services/T/B/w0rdw0rdw0rd", "slack", "slack https://hooks.slack.com", "https://hooks.slack.com/services/T/B/w0rdw0rdw0rd", ""},
		{"as Discord does", "https://discord.com/api/webhooks/1/w0rdw0rdw0rd", "discord", "discord https://discord.com", "https://discord.com/api/webhooks/1/w0rdw0rdw0rd?wait=true", ""},
		{"of its old name", "https://ptb.discordapp.com/api/webhooks/1/w0rdw0rdw0rd", "discord", "discord https://ptb.discordapp.com", "https://ptb.discordapp.com/api/webhooks/1/w0rdw0rdw0rd?wait=true", ""},
		{"as Teams does", "https://prod-1.westeurope.logic.azure.com:443/workflows/1/triggers/manual/paths/invoke?api-version=2016-06-01&sig=w0rdw0rdw0rd", "teams", "teams https://prod-1.westeurope.logic.azure.com:443", "https://prod-1.westeurope.logic.azure.com:443/workflows/1/triggers/manual/paths/invoke?api-version=2016-06-01&sig=w0rdw0rdw0rd", ""},
		{"its newer form", "https://default1.2.environment.api.powerplatform.com/powerautomate/automations/direct/workflows/1/triggers/manual/paths/invoke?sig=w0rdw0rdw0rd", "teams", "teams https://default1.2.environment.api.powerplatform.com", "https://default1.2.environment.api.powerplatform.com/powerautomate/automations/direct/workflows/1/triggers/manual/paths/invoke?sig=w0rdw0rdw0rd", ""},
		{"its older one", "https://x.webhook.office.com/webhookb2/w0rdw0rdw0rd", "teams", "teams https://x.webhook.office.com", "https://x.webhook.office.com/webhookb2/w0rdw0rdw0rd", ""},
		{"Telegram's", "https://api.telegram.org/bot1:w0rdw0rdw0rd/sendMessage?chat_id=-100", "telegram", "telegram https://api.telegram.org", "https://api.telegram.org/bot1:w0rdw0rdw0rd/sendMessage", "-100"},
		{"Slack's parts", "slack://hook:T-B-w0rdw0rdw0rd@webhook", "slack", "slack https://hooks.slack.com", "https://hooks.slack.com/services/T/B/w0rdw0rdw0rd", ""},
		{"Slack's URL with the scheme", "slack://hooks.slack.com/services/T/B/w0rdw0rdw0rd", "slack", "slack https://hooks.slack.com", "https://hooks.slack.com/services/T/B/w0rdw0rdw0rd", ""},
		{"Discord's parts", "discord://w0rdw0rdw0rd@1?thread_id=7", "discord", "discord https://discord.com", "https://discord.com/api/webhooks/1/w0rdw0rdw0rd?thread_id=7&wait=true", ""},
		{"Teams, elsewhere", "teams://flow.example.com/x?sig=w0rdw0rdw0rd", "teams", "teams https://flow.example.com", "https://flow.example.com/x?sig=w0rdw0rdw0rd", ""},
		{"Mattermost", "mattermost://chat.example.com:8065/w0rdw0rdw0rd", "mattermost", "mattermost https://chat.example.com:8065", "https://chat.example.com:8065/hooks/w0rdw0rdw0rd", ""},
		{"and a channel", "mattermost://chat.example.com/w0rdw0rdw0rd/ops?disabletls=yes&insecure=true", "mattermost", "mattermost http://chat.example.com", "http://chat.example.com/hooks/w0rdw0rdw0rd", "ops"},
		{"a Telegram chat", "telegram://1:w0rdw0rdw0rd@-100?thread=3", "telegram", "telegram https://api.telegram.org", "https://api.telegram.org/bot1:w0rdw0rdw0rd/sendMessage", "-1003"},
		{"a Telegram channel", "telegram://1:w0rdw0rdw0rd@news", "telegram", "telegram https://api.telegram.org", "https://api.telegram.org/bot1:w0rdw0rdw0rd/sendMessage", "@news"},
		{"as shoutrrr has it", "telegram://1:w0rdw0rdw0rd@telegram?chats=@news", "telegram", "telegram https://api.telegram.org", "https://api.telegram.org/bot1:w0rdw0rdw0rd/sendMessage", "@news"},
		{"mail", "smtp://user:w0rdw0rdw0rd@mail.example.com/a@example.com?from=b@example.com", "smtp", "smtp mail.example.com:587", "", "a@example.com"},
		{"mail with TLS", "smtps://user:w0rdw0rdw0rd@mail.example.com/?from=b@example.com&to=a@example.com,c@example.com", "smtp", "smtp mail.example.com:465", "", "a@example.comc@example.com"},
		{"what only shoutrrr knows", "ntfy://user:w0rdw0rdw0rd@ntfy.sh/topic", "shoutrrr", "ntfy", "", ""},
		{"where the host is one", "gotify://push.example.com/w0rdw0rdw0rd", "shoutrrr", "gotify push.example.com", "", ""},
		{"where it is the token", "ifttt://w0rdw0rdw0rd/?events=x", "shoutrrr", "ifttt", "", ""},
		{"and where a path follows", "pushbullet://w0rdw0rdw0rdw0rdw0rdw0rdw0rdw0rdab/device", "shoutrrr", "pushbullet", "", ""},
		{"and another", "pushover://shoutrrr:w0rdw0rdw0rd@userkey/", "shoutrrr", "pushover", "", ""},
		{"a bot's token of Slack is shoutrrr's", "slack://xoxb:123456789012-123456789012-w0rdw0rdw0rdw0rdw0rdw0rd@C001CHANNEL", "shoutrrr", "slack", "", ""},
	} {
		o, err := FromURL(tc.address)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if err := o.Validate(); err != nil || o.Window != DefaultWindow {
			t.Errorf("%s: %v, window %s", tc.why, err, o.Window)
		}
		got := must(parseTarget(o.URL, ""))(t)
		post, rest := "", got.chat+got.thread+got.channel
		if got.post != nil {
			post = got.post.String()
		}
		for _, a := range got.mail.to {
			rest += a.Address
		}
		if string(got.service) != tc.service || got.place != tc.place || post != tc.post || rest != tc.rest {
			t.Errorf("%s: %s, %s, %s, %q", tc.why, got.service, got.place, post, rest)
		}
		if s, err := New("tattler/test", *o); err != nil || s.String() != "notify "+tc.place {
			t.Errorf("%s: %v, %v", tc.why, s, err)
		}
		if strings.Contains(got.place, w0rd) {
			t.Errorf("%s: %s shows a credential", tc.why, got.place)
		}
	}
}

func TestWrongAddresses(t *testing.T) {
	for _, tc := range []struct{ why, address, want string }{
		{"nothing", "", "url: missing"},
		{"no URL", "w0rdw0rdw0rd", "url: not a URL"},
		{"not even that", "https://w0rdw0rdw0rd\x7f/", "url: not a URL"},
		{"a web server's", "https://example.com/w0rdw0rdw0rd", "url: it does not show which service this is: set service"},
		{"Telegram without a chat", "https://api.telegram.org/bot1:w0rdw0rdw0rd", "chat_id="},
		{"several chats", "telegram://1:w0rdw0rdw0rd@telegram?chats=@a,@b", "configure one sink for each"},
		{"a thread without a number", "telegram://1:w0rdw0rdw0rd@a?thread=general", "the thread of a chat must be a number"},
		{"nor as JSON has one", "telegram://1:w0rdw0rdw0rd@a?thread=007", "the thread of a chat must be a number"},
		{"and of the other form", "https://api.telegram.org/bot1:w0rdw0rdw0rd/sendMessage?chat_id=1&message_thread_id=x", "the thread of a chat must be a number"},
		{"a channel of Slack as people write it", "slack://xoxb:123456789012-123456789012-w0rdw0rdw0rdw0rdw0rdw0rd@#ops", "without # before the channel"},
		{"a plus", "smtp://u:w0rdw0rdw0rd@host/a@b?from=a+b@b", "%2B"},
		{"no token", "telegram://w0rdw0rdw0rd@a", "want telegram://BOT:TOKEN@CHAT"},
		{"an unknown key", "discord://w0rdw0rdw0rd@1?color=red", `discord: unknown key "color"; known are thread_id`},
		{"no id", "discord://w0rdw0rdw0rd", "want discord://TOKEN@ID"},
		{"too few parts", "slack://hook:w0rdw0rdw0rd@webhook", "want slack://hook:"},
		{"Slack without a path", "slack://w0rdw0rdw0rd", "want slack:// and what follows https://"},
		{"Teams with a user", "teams://w0rdw0rdw0rd@x/y", "want teams:// and what follows https://"},
		{"Mattermost without a token", "mattermost://w0rdw0rdw0rd", "want mattermost://HOST/TOKEN"},
		{"nobody to write", "smtp://u:w0rdw0rdw0rd@host?from=a@b", "the recipients"},
		{"nobody who writes", "smtp://u:w0rdw0rdw0rd@host/a@b", "?from="},
		{"an unknown way", "smtp://u:w0rdw0rdw0rd@host/a@b?from=a@b&tls=perhaps", "tls: want auto, always or none"},
		{"two ways", "smtps://u:w0rdw0rdw0rd@host/a@b?from=a@b&tls=none", "tls: smtps uses TLS"},
		{"an unknown scheme", "fax://w0rdw0rdw0rd", "the scheme fax is not one of bark, discord,"},
		{"the logger of shoutrrr notifies no one", "logger://", "the scheme logger is not one of"},
		{"what shoutrrr does not take", "pushover://w0rdw0rdw0rd", "shoutrrr rejects it as a pushover address"},
	} {
		_, err := FromURL(tc.address)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), w0rd) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
}

// TestIdentity: another destination is another sink for --to; another password is not.
func TestIdentity(t *testing.T) {
	same := func(a, b string) bool { return Identity(a) == Identity(b) }
	for _, pair := range [][2]string{
		{"telegram://1:w0rd@-100?thread=3", "telegram://1:other@-100?thread=3"},
		{"smtp://u:w0rd@host/a@b.c?from=x@b.c", "smtp://u:other@host/?to=a@b.c&from=x@b.c"},
		{"zulip://bot:w0rd@chat.example.com?stream=a&topic=b", "zulip://bot:other@chat.example.com?stream=a&topic=b"},
		{"slack://hook:T-B-X@webhook", "https://hooks.slack.com/services/T/B/X"},
	} {
		if !same(pair[0], pair[1]) {
			t.Errorf("%s and %s are one place", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{"slack://hook:T-B-X@webhook", "slack://hook:T-B-Y@webhook"},
		{"telegram://1:w0rd@telegram?chats=@a", "telegram://1:w0rd@telegram?chats=@b"},
		{"telegram://1:w0rd@-100?thread=3", "telegram://1:w0rd@-100?thread=4"},
		{"telegram://1:w0rd@-100", "telegram://2:w0rd@-100"},
		{"discord://w0rd@1?thread_id=1", "discord://w0rd@1?thread_id=2"},
		{"smtp://u:w0rd@host/a@b.c?from=x@b.c", "smtp://u:w0rd@host/d@b.c?from=x@b.c"},
		{"zulip://bot:w0rd@chat.example.com?stream=a&topic=b", "zulip://bot:w0rd@chat.example.com?stream=a&topic=c"},
		{"mattermost://host/token", "mattermost://host/token/ops"},
	} {
		if same(pair[0], pair[1]) {
			t.Errorf("%s and %s are two places", pair[0], pair[1])
		}
	}
}

func TestTakes(t *testing.T) {
	for address, want := range map[string]bool{
		"https://hooks.slack.com/services/x":             true,
		"https://discord.com/api/webhooks/1/x":           true,
		"https://discord.com/channels/1":                 false,
		"https://a.webhook.office.com/x":                 true,
		"https://a.logic.azure.com/x":                    true,
		"https://a.api.powerplatform.com/x":              true,
		"https://example.com/hooks.slack.com":            false,
		"https://hooks.slack.com.example.com/services/x": false,
		"https://notlogic.azure.com/x":                   false,
	} {
		if got := Takes(must(url.Parse(address))(t)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

func TestValidate(t *testing.T) {
	ok := Options{URL: "https://hooks.slack.com/services/T/B/w0rdw0rdw0rd"}
	for _, tc := range []struct {
		why   string
		spoil func(*Options)
		want  string
	}{
		{"a URL is enough", func(*Options) {}, ""},
		{"an unknown service", func(o *Options) { o.Service = "irc" }, `service: "irc" is not one of slack,`},
		{"a service that the URL says itself", func(o *Options) { o.Service, o.URL = Slack, "discord://w0rdw0rdw0rd@1" }, "service: only for a url"},
		{"a page that is invalid", func(o *Options) { o.BaseURL = "example.com" }, "baseURL: must begin with https://"},
		{"no template", func(o *Options) { o.Template = "{{" }, "template: template: template:1: unclosed action"},
		{"a field that is not there", func(o *Options) { o.Template = "{{.Name}}" }, "template: for an event with op snapshot:"},
		{"only with several", func(o *Options) { o.Template = "{{if .Several}}{{.None}}{{end}}" }, "template: for several events:"},
		{"a negative window", func(o *Options) { o.Window = -1 }, "window: must not be negative"},
		{"a negative timeout", func(o *Options) { o.Timeout = -1 }, "timeout: must not be negative"},
		{"quiet hours without an end", func(o *Options) { o.QuietHours.From = clock("22:00") }, "quietHours: from and to belong together"},
		{"quiet hours without length", func(o *Options) { o.QuietHours.From, o.QuietHours.To = clock("22:00"), clock("22:00") }, "quietHours: from and to are the same time"},
		{"a time that is invalid", func(o *Options) { o.Digest = "noon" }, `digest: "noon" is not a time of day`},
		{"midnight is a time", func(o *Options) { o.QuietHours.From, o.QuietHours.To = clock("22:00"), clock("00:00") }, ""},
		{"a zone that is invalid", func(o *Options) { o.Timezone = "Moon/Base" }, `timezone: "Moon/Base" is not a zone`},
		{"TLS that is not used", func(o *Options) { o.URL, o.TLS.Insecure = "ntfy://ntfy.sh/topic", true }, "tls: this url does not use it"},
		{"half of a certificate", func(o *Options) { o.TLS.Cert = "a.pem" }, "tls: cert and key belong together"},
	} {
		o := ok
		tc.spoil(&o)
		err := o.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), w0rd) {
			t.Errorf("%s: shows a credential: %v", tc.why, err)
		}
		if _, newErr := New("tattler/test", o); (newErr == nil) != (err == nil) {
			t.Errorf("%s: New says %v", tc.why, newErr)
		}
	}
	ok.TLS.CA = filepath.Join(t.TempDir(), "none.pem")
	if _, err := New("tattler/test", ok); err == nil || !strings.Contains(err.Error(), "tls: ca:") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func clock(text string) (c Clock) {
	if err := c.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return c
}

func TestYAML(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tattler.yaml")
	text := `apiVersion: tattler.dev/v1alpha1
kind: Config
sinks:
- name: chat
  notify:
    url: https://chat.example.com/hooks/${env:TOKEN}
    service: mattermost
    baseURL: https://tattler.example.com
    template: "{{.Title}}"
    window: 1m
    digest: "08:00"
    quietHours: {from: "22:00", to: "07:00"}
    timezone: Europe/Berlin
    timeout: 5s
    tls: {insecure: true}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOKEN", w0rd)
	loader := config.Loader{Sinks: []config.SinkType{{Name: "notify", New: func() config.Options { return &Options{Window: DefaultWindow} }}}}
	c, err := loader.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := &Options{
		URL: "https://chat.example.com/hooks/" + w0rd, Service: Mattermost, BaseURL: "https://tattler.example.com", Template: "{{.Title}}",
		Window: time.Minute, Digest: clock("08:00"), QuietHours: QuietHours{From: clock("22:00"), To: clock("07:00")},
		Timezone: "Europe/Berlin", Timeout: 5 * time.Second, TLS: sink.TLS{Insecure: true},
	}
	if d := cmp.Diff(want, c.Sinks[0].Options); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, `"08:00"`, `"8 o'clock"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loader.Load(file); err == nil || !strings.Contains(err.Error(), `"8 o'clock" is not a time of day, such as 08:00`) {
		t.Errorf("a time that is invalid: %v", err)
	}
}
