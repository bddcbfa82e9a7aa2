package notify

import (
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/event"
)

// text is text that already is in a service's markup.
type text string

// markup is the markup of a service. It keeps names and values from having an effect as markup or as a mention.
type markup struct {
	escape func(s string) string
	bold   [2]string // before and after
	code   func(s string) string
	link   func(label, url string) string
	// length counts a text as the service does; limit is the maximum.
	length func(s string) int
	limit  int
	// stories is the maximum number of stories that people will read there.
	stories int
}

func (m markup) strong(v any) text { return text(m.bold[0] + m.plain(v) + m.bold[1]) }

// plain escapes a value, unless it is already in the markup.
func (m markup) plain(v any) string {
	if t, ok := v.(text); ok {
		return string(t)
	}
	return m.escape(printed(v))
}

// backtick replaces the character that would end a code span.
var backtick = strings.NewReplacer("`", "ˋ")

// inChat is the maximum number of stories in a chat message; the others are only counted.
const inChat = 12

const gap = "\u200b" // a zero-width space, which breaks a mention

// quiet breaks what a service without escapes could take for a mention, a link, or an HTML element.
var quiet = strings.NewReplacer("@", "@"+gap, "<", "<"+gap, "://", ":"+gap+"//", "](", "]"+gap+"(")

func quoted(s string) string { return "`" + backtick.Replace(s) + "`" }

var (
	slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "ˋ", "*", "∗", "@", "@"+gap, "://", ":"+gap+"//")
	slackCode   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	// markdown escapes what CommonMark and Discord have in common.
	markdown = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "~", "\\~", "|", "\\|",
		"[", "\\[", "]", "\\]", "<", "\\<", ">", "\\>", "#", "\\#", "@", "@"+gap, "://", ":"+gap+"//")
	slackURL    = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C")
	markdownURL = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20")
)

func markdownLink(label, url string) string {
	return "[" + label + "](" + markdownURL.Replace(url) + ")"
}

func wide(s string) int { return len(utf16.Encode([]rune(s))) }

// markups are the services' markups. Discord and Telegram count UTF-16 code units, and so do their limits here. A
// Teams card may have 28 KB, which includes the JSON around each line. Slack's limit is higher than anyone would
// read.
var markups = map[Service]markup{
	Slack: {
		escape: slackEscape.Replace, bold: [2]string{"*", "*"}, length: utf8.RuneCountInString, limit: 11_000, stories: inChat,
		code: func(s string) string { return slackCode.Replace(quoted(s)) },
		link: func(label, url string) string { return "<" + slackURL.Replace(url) + "|" + label + ">" },
	},
	Discord: {
		escape: markdown.Replace, bold: [2]string{"**", "**"}, code: quoted, link: markdownLink, length: wide, limit: 3_900, stories: inChat,
	},
	Mattermost: {
		escape: markdown.Replace, bold: [2]string{"**", "**"}, code: quoted, link: markdownLink,
		length: utf8.RuneCountInString, limit: 15_000, stories: inChat,
	},
	Teams: { // cards know no code spans
		escape: markdown.Replace, bold: [2]string{"**", "**"}, code: markdown.Replace, link: markdownLink,
		length: func(s string) int { return 2*len(s) + 100*strings.Count(s, "\n") }, limit: 24_000, stories: inChat,
	},
	Telegram: {
		escape: func(s string) string { return strings.ReplaceAll(html.EscapeString(s), "@", "@"+gap) },
		bold:   [2]string{"<b>", "</b>"}, length: wide, limit: 3_500, stories: inChat,
		code: func(s string) string { return "<code>" + html.EscapeString(s) + "</code>" },
		link: func(label, url string) string { return `<a href="` + html.EscapeString(url) + `">` + label + "</a>" },
	},
	email: {
		escape: func(s string) string { return s }, code: func(s string) string { return s },
		link: func(_, url string) string { return url }, length: func(s string) int { return len(s) }, limit: 200_000, stories: maxStories + maxProminent,
	},
	others: {
		escape: quiet.Replace, code: quiet.Replace,
		link: func(_, url string) string { return url }, length: func(s string) int { return len(s) }, limit: 3_500, stories: inChat,
	},
}

// short are lower limits of some shoutrrr services, in bytes, with space for a title and a link if these are part of
// the text: Pushover and PagerDuty take 1024, Signal and WeCom about 2000. They answer a longer message with 400 and
// no reason.
var short = map[string]int{"pushover": 900, "pagerduty": 500, "signal": 1400, "wecom": 1400}

// markup returns the markup of the target's service.
func (t target) markup() markup {
	u := markups[t.service]
	if scheme, _, _ := strings.Cut(t.raw, ":"); short[scheme] > 0 {
		u.limit = short[scheme]
	}
	return u
}

// icons shows an operation in a list.
var icons = map[string]text{
	"": "🔵", "created": "🟢", "updated": "🔵", "deleted": "🔴", "gap": "⚠️", "entered": "🟢", "left": "🟠", "snapshot": "⚪", "converted": "⚪", "absent": "🔵",
}

// icon returns an icon for an operation, or for a story and its outcome.
func icon(of any) text {
	switch of := of.(type) {
	case string:
		return icons[of]
	case Story:
		return iconOf(of.Op, of.Severity)
	}
	return ""
}

func iconOf(op string, s event.Severity) text {
	switch {
	case op == "gap":
	case s == event.Failure:
		return "🔴"
	case s == event.Warning:
		return "🟠"
	case s == event.Recovery:
		return "🟢"
	}
	return icons[op]
}

// icon returns the message's icon.
func (m *Message) icon() string { return string(iconOf(m.Op, m.Severity)) }

// color returns the color of a message, for services that show one.
func color(m *Message) int {
	switch {
	case m.Severity == event.Failure:
		return 0xd93025
	case m.Severity == event.Warning:
		return 0xe37400
	case m.Severity == event.Recovery, m.Op == "created":
		return 0x188038
	}
	return 0x1a73e8
}
