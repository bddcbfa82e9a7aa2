package notify

import (
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/event"
)

// text is written in a service's markup already.
type text string

// markup is how a service's text is written. What is within names and values means nothing there, and
// mentions nobody.
type markup struct {
	escape func(s string) string
	bold   [2]string // before and after
	code   func(s string) string
	link   func(label, url string) string
	// length is how long a text is as the service counts, limit the most.
	length func(s string) int
	limit  int
	// stories are the most that people read there.
	stories int
}

func (m markup) strong(v any) text { return text(m.bold[0] + m.plain(v) + m.bold[1]) }

// plain is a value escaped, unless it is written in the markup.
func (m markup) plain(v any) string {
	if t, ok := v.(text); ok {
		return string(t)
	}
	return m.escape(printed(v))
}

// backtick is what stands for the character that would end a code span.
var backtick = strings.NewReplacer("`", "ˋ")

// inChat is how many stories a message in a chat has at most; the others are counted.
const inChat = 12

const gap = "\u200b" // a space of no width: what is broken by it is no mention

// quiet breaks what services without an escape of their own may take for a mention, of a user or of all,
// a link, or an element of HTML.
var quiet = strings.NewReplacer("@", "@"+gap, "<", "<"+gap, "://", ":"+gap+"//", "](", "]"+gap+"(")

func quoted(s string) string { return "`" + backtick.Replace(s) + "`" }

var (
	slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "ˋ", "*", "∗", "@", "@"+gap, "://", ":"+gap+"//")
	slackCode   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	// markdown is escaped with what CommonMark and Discord have in common.
	markdown = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "~", "\\~", "|", "\\|",
		"[", "\\[", "]", "\\]", "<", "\\<", ">", "\\>", "#", "\\#", "@", "@"+gap, "://", ":"+gap+"//")
	slackURL    = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C")
	markdownURL = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20")
)

func markdownLink(label, url string) string {
	return "[" + label + "](" + markdownURL.Replace(url) + ")"
}

func wide(s string) int { return len(utf16.Encode([]rune(s))) }

// markups are those of the services. Discord's and Telegram's limits count UTF-16, as they do; a Teams card
// may have 28 KB, of which the frame of each line takes some; Slack would take more than anyone reads.
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
		link: func(_, url string) string { return url }, length: func(s string) int { return len(s) }, limit: 200_000, stories: maxStories + maxLoud,
	},
	others: {
		escape: quiet.Replace, code: quiet.Replace,
		link: func(_, url string) string { return url }, length: func(s string) int { return len(s) }, limit: 3_500, stories: inChat,
	},
}

// short are the limits of shoutrrr's services that take less than others, in bytes, with room for a title and a
// link where these are in the text: Pushover and PagerDuty 1024, Signal and WeCom some 2000. They say 400 of what is
// longer, and not why.
var short = map[string]int{"pushover": 900, "pagerduty": 500, "signal": 1400, "wecom": 1400}

// markup is that of the target's service.
func (t target) markup() markup {
	u := markups[t.service]
	if scheme, _, _ := strings.Cut(t.raw, ":"); short[scheme] > 0 {
		u.limit = short[scheme]
	}
	return u
}

// icons make an operation visible in a list.
var icons = map[string]text{
	"": "🔵", "created": "🟢", "updated": "🔵", "deleted": "🔴", "gap": "⚠️", "entered": "🟢", "left": "🟠", "snapshot": "⚪", "converted": "⚪",
}

// icon shows what happened: an operation, or a story and how well it ended.
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

// icon is the message's own.
func (m *Message) icon() string { return string(iconOf(m.Op, m.Severity)) }

// color is that of a message where services show one.
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
