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

// payload returns the request body for a message. The text is in the service's markup.
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
			for _, part := range parts(body, 2900) { // a section takes 3000
				blocks = append(blocks, jsonObject{"type": "section", "text": jsonObject{"type": "mrkdwn", "text": part, "verbatim": true}})
			}
			v["attachments"] = []jsonObject{{"color": shade, "fallback": u.escape(title), "blocks": blocks}}
		}
	case Discord:
		embed := jsonObject{"title": u.escape(cut(title, 120)), "color": color(m)} // a title takes 256, including escapes
		if link, err := url.Parse(m.Link); err == nil && strings.Contains(link.Hostname(), ".") {
			embed["url"] = m.Link
		} else if m.Link != "" { // Discord refuses a message if the host of its url has no domain
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

// card returns an adaptive card for a Teams workflow. Each line is a block, because line ends have no effect within
// one.
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

// parts splits a text into pieces of at most so many runes, at line ends if possible.
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

// marshal encodes JSON without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
