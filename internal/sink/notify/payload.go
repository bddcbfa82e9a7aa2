package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/event"
)

// jsonObject is a JSON object.
type jsonObject = map[string]any

// payload is the body that a web service gets for a message, of which this is the text in its markup.
func (t target) payload(m *Message, body string) ([]byte, error) {
	u := markups[t.service]
	title := cut(m.Title, maxTitle)
	head := m.icon() + " " + string(u.strong(title))
	if m.Link != "" {
		head += " " + u.link("show", m.Link)
	}
	shade := fmt.Sprintf("#%06x", color(m))
	var v jsonObject
	switch t.service {
	case Slack:
		v = jsonObject{"text": head, "unfurl_links": false, "unfurl_media": false}
		if body != "" {
			var blocks []jsonObject
			for _, part := range parts(body, 2900) { // a section has 3000
				blocks = append(blocks, jsonObject{"type": "section", "text": jsonObject{"type": "mrkdwn", "text": part, "verbatim": true}})
			}
			v["attachments"] = []jsonObject{{"color": shade, "fallback": u.escape(title), "blocks": blocks}}
		}
	case Discord:
		embed := jsonObject{"title": u.escape(cut(title, 120)), "color": color(m)} // a title has 256, escapes included
		if link, err := url.Parse(m.Link); err == nil && strings.Contains(link.Hostname(), ".") {
			embed["url"] = m.Link
		} else if m.Link != "" { // Discord refuses all of a message whose url has a host without a domain
			body = strings.TrimSpace(u.link("show", m.Link) + "\n" + body)
		}
		if body != "" {
			embed["description"] = body
		}
		v = jsonObject{"embeds": []jsonObject{embed}, "allowed_mentions": jsonObject{"parse": []string{}}}
	case Mattermost:
		attachment := jsonObject{"color": shade, "fallback": quiet.Replace(title), "text": strings.TrimSpace(head + "\n" + body)}
		v = jsonObject{"attachments": []jsonObject{attachment}}
		if t.channel != "" {
			v["channel"] = t.channel
		}
	case Telegram:
		v = jsonObject{
			"chat_id": t.chat, "text": strings.TrimSpace(head + "\n" + body), "parse_mode": "HTML",
			"link_preview_options": jsonObject{"is_disabled": true},
		}
		if t.thread != "" {
			v["message_thread_id"] = json.Number(t.thread)
		}
	default:
		v = card(m, u.escape(title), body)
	}
	return marshal(v)
}

// maxTitle bounds a title, in runes.
const maxTitle = 250

// card is what a workflow of Teams takes: an adaptive card, each line a block, as a line's end means nothing
// within one.
func card(m *Message, title, body string) jsonObject {
	shade := "accent"
	switch {
	case m.Severity == event.Failure:
		shade = "attention"
	case m.Severity == event.Warning:
		shade = "warning"
	case m.Severity == event.Recovery, m.Op == "created":
		shade = "good"
	}
	blocks := []jsonObject{{"type": "TextBlock", "text": title, "weight": "bolder", "size": "medium", "color": shade, "wrap": true}}
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			blocks = append(blocks, jsonObject{"type": "TextBlock", "text": line, "wrap": true, "spacing": "none"})
		}
	}
	content := jsonObject{
		"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
		"msteams": jsonObject{"width": "Full"}, "body": blocks,
	}
	if m.Link != "" {
		content["actions"] = []jsonObject{{"type": "Action.OpenUrl", "title": "show", "url": m.Link}}
	}
	return jsonObject{"type": "message", "attachments": []jsonObject{
		{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": content},
	}}
}

// parts are a text in pieces of at most so many runes, split at the ends of lines where there are any.
func parts(s string, most int) []string {
	var all []string
	part := ""
	for line := range strings.SplitSeq(s, "\n") {
		for utf8.RuneCountInString(line) > most {
			r := []rune(line)
			if part != "" {
				all, part = append(all, part), ""
			}
			all, line = append(all, string(r[:most])), string(r[most:])
		}
		if part != "" && utf8.RuneCountInString(part)+1+utf8.RuneCountInString(line) > most {
			all, part = append(all, part), ""
		}
		part = strings.TrimPrefix(part+"\n"+line, "\n")
	}
	if part != "" {
		all = append(all, part)
	}
	return all
}

// marshal writes JSON without escaping for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
