package redact

import "strings"

// minURLToken is the length from which a URL's user without a password counts as a token
// (https://ghp_…@github.com) and not as a name (ssh://git@github.com).
const minURLToken = 20

// userInfo returns the span of a URL's user and password, after the ://, as in scheme://user:password@host and
// scheme://token@host. A name with a digest (docker-pullable://app@sha256:…, as in a pod's status) has none;
// nor has host:port/path@version. Passwords that are not properly escaped may contain / and @. from is the end
// of the ://, which may be written as :\/\/.
func (t *search) userInfo(from int) (span, bool) {
	s := t.s
	if len(s)-from < maxURL && strings.IndexByte(s[from:], '@') < 0 {
		return span{name: "url"}, false
	}
	colon := from + strings.LastIndexByte(s[max(0, from-len(`:\/\/`)):from], ':') - min(from, len(`:\/\/`))
	rest := s[from:passwordEnd(s, from, urlEnd(s, from))]
	first := strings.IndexAny(rest, ":@/?#")
	if first < 0 {
		return span{from, from + len(rest), "url"}, len(rest) == maxURL
	}
	user := rest[:first]
	if rest[first] == '@' {
		return span{from, from + first, "url"}, (len(user) >= minURLToken || tokenSchemes[schemeOf(s[:colon])]) && !isReference(user)
	}
	at := strings.LastIndexByte(rest, '@')
	switch {
	case rest[first] == ':' && at < 0 && len(rest) == maxURL: // its end is out of reach
		return span{from, from + len(rest), "url"}, true
	case rest[first] == ':' && at == first+1: // without a password
		return span{from, from + first, "url"}, len(user) >= minURLToken && !isReference(user)
	}
	if rest[first] != ':' || at < 0 || strings.HasPrefix(rest[at+1:], "sha256:") || strings.HasPrefix(rest[at+1:], "sha512:") {
		return span{}, false
	}
	password := rest[first+1 : at]
	if i := strings.IndexAny(password, "/?#"); i >= 0 && isPort(password[:i]) && (!databases[schemeOf(s[:colon])] || strings.Contains(user, ".")) {
		return span{}, false // a port, and an @ in the path
	}
	if i := strings.IndexAny(password, "@/"); i > 0 && isReference(password[:i]) {
		return span{}, false
	}
	return span{from, from + at, "url"}, password != "" && !isReference(password) && !isMask(password)
}

// passwordEnd returns the end of a URL that has ended at end, or the @ after a character in the password that
// usually ends a URL, such as a quote.
func passwordEnd(s string, from, end int) int {
	user, password, found := strings.Cut(s[from:end], ":")
	if !found || end == len(s) || user == "" && password == "" || strings.ContainsAny(s[from:end], "@/ ") || isPort(password) || strings.IndexByte("\"'<>\\", s[end]) < 0 {
		return end
	}
	scheme := from
	for scheme > max(0, from-maxScheme) && (isWordByte(s[scheme-1]) || strings.IndexByte("+:/\\", s[scheme-1]) >= 0) {
		scheme--
	}
	if scheme > 0 && strings.IndexByte("\"'`<>", s[scheme-1]) >= 0 { // a text in quotes, or an element
		return end
	}
	rest := s[end:min(len(s), end+maxGap)]
	at := strings.IndexAny(rest, "@ \t\r\n/")
	if at < 0 || rest[at] != '@' {
		return end
	}
	return end + at + 1
}

// maxScheme bounds a URL's scheme, in bytes.
const maxScheme = 64

// maxURL bounds the part of a URL that is searched, in bytes.
const maxURL = 8 << 10

// urlEnd returns the end of a URL, as far as the surrounding text shows it.
func urlEnd(s string, from int) int {
	end := min(len(s), from+maxURL)
	if i := strings.Index(s[from:end], "://"); i >= 0 { // another one, in a list
		end = from + i
		for end > from && isWordByte(s[end-1]) {
			end--
		}
	}
	if i := strings.IndexAny(s[from:end], " \t\r\n\"'`<>\\"); i >= 0 {
		end = from + i
	}
	cost(end - from)
	return end
}

func isPort(s string) bool {
	return s != "" && len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}

// schemeOf returns the scheme of a URL, which is before its colon.
func schemeOf(before string) string {
	i := len(before)
	for i > 0 && (isWordByte(before[i-1]) || before[i-1] == '+') {
		i--
	}
	return strings.ToLower(before[i:])
}

// tokenSchemes are those of servers to which a user without a password is a token.
var tokenSchemes = set(`nats discord telegram`)

// databases are the schemes of servers that always require a login.
var databases = set(`postgres postgresql mysql mariadb mongodb mongodb+srv redis rediss amqp amqps mssql sqlserver
	clickhouse cockroachdb cassandra oracle ldap ldaps smtp smtps ftp ftps sftp nats kafka mqtt mqtts stomp couchdb`)

// hooks are prefixes of URLs whose remaining path is the credential: anyone who has it may post.
var hooks = []string{
	"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/", "discord.com/api/webhooks/",
	"discordapp.com/api/webhooks/", ".webhook.office.com/webhookb2/", "outlook.office.com/webhook/", "outlook.office365.com/webhook/",
	"api.telegram.org/bot", "hooks.zapier.com/hooks/catch/", "/open-apis/bot/v2/hook/", "/open-apis/bot/hook/",
	"oapi.dingtalk.com/robot/send?access_token=", "qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", "events.pagerduty.com/integration/",
	"chat.googleapis.com/v1/spaces/", "hc-ping.com/", "nosnch.in/", "webhook.site/", "hook.integromat.com/", "hook.eu1.make.com/", "hook.us1.make.com/",
	"alert.victorops.com/integrations/generic/", "webhooks.mongodb-stitch.com/", "api.opsgenie.com/v1/json/", "hooks.airtable.com/workflows/",
	"ifttt.com/trigger/", "splunkcloud.com/services/collector/raw?token=", "api.flock.com/hooks/sendmessage/", "hooks.glip.com/webhook/",
	"webexapis.com/v1/webhooks/incoming/", "ingest.sentry.io/api/",
}

// hookPath returns the secret part of a hook's URL, which starts at from.
func (t *search) hookPath(from int) (span, bool) {
	s := t.s
	to := urlEnd(s, from)
	return span{from, to, "webhook"}, to-from >= 8 && !isReference(s[from:to]) && strings.ContainsAny(s[from:to], "0123456789")
}
