package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// messageOf returns the message for events.
func messageOf(k owners, events ...*event.Event) *Message {
	var s summary
	for _, e := range events {
		s.add(&sink.Message{Event: e}, k, nil)
	}
	return s.message(k, sample)
}

func TestTitles(t *testing.T) {
	web, cart := resource("Deployment", "shop", "web", nil), resource("Deployment", "shop", "cart", nil)
	owned := resource("Pod", "shop", "web-1", &event.Owner{Kind: "ReplicaSet", Name: "web-a", UID: "rs"})
	other := resource("Pod", "shop", "web-2", &event.Owner{Kind: "ReplicaSet", Name: "web-a", UID: "rs"})
	for _, tc := range []struct {
		why       string
		data      []event.Data
		want      string
		prominent bool
	}{
		{"an update", []event.Data{updated(web)}, "Deployment shop/web updated · prod", false},
		{"of the cluster's own", []event.Data{updated(resource("Node", "", "n1", nil))}, "Node n1 updated · prod", false},
		{"a deletion stands out", []event.Data{{Op: event.Deleted, Resource: web}}, "Deployment shop/web DELETED · prod", true},
		{"one that its owner makes does not", []event.Data{{Op: event.Deleted, Resource: owned}}, "Pod shop/web-1 deleted · prod", false},
		{"a gap", []event.Data{{Op: event.Gap, Resource: event.Resource{Resource: "pods", Kind: "Pod"}, Gap: &event.GapInfo{}}}, "GAP: changes of pods were missed · prod", true},
		{"a selection", []event.Data{{Op: event.Left, Resource: web}}, "Deployment shop/web left the selection · prod", false},
		{"created and then updated is created", []event.Data{{Op: event.Created, Resource: web}, updated(web)}, "Deployment shop/web created · prod", false},
		{"created and then deleted is deleted", []event.Data{{Op: event.Created, Resource: web}, {Op: event.Deleted, Resource: web}}, "Deployment shop/web DELETED · prod", true},
		{"the same twice", []event.Data{updated(web), updated(web)}, "Deployment shop/web updated · prod", false},
		{"an owner that has not changed", []event.Data{updated(owned), {Op: event.Deleted, Resource: other}}, "ReplicaSet shop/web-a: changes of what it owns · prod", false},
		{"two objects", []event.Data{updated(web), {Op: event.Deleted, Resource: cart}}, "2 changes: 1 deleted, 1 updated · prod", true},
	} {
		m := messageOf(owners{}, changes(tc.data...)...)
		if m.Title != tc.want || m.Prominent != tc.prominent || m.Total != len(tc.data) {
			t.Errorf("%s: %q, prominent %v, total %d", tc.why, m.Title, m.Prominent, m.Total)
		}
	}
}

// TestOrder: an owner replaces an object within a second. The deletion was seen in milliseconds, and the creation is dated at
// its whole second, but what happened last is the creation.
func TestOrder(t *testing.T) {
	set := &event.Owner{Kind: "StatefulSet", Name: "db", UID: "set"}
	first, second := resource("Pod", "shop", "db-0", set), resource("Pod", "shop", "db-0", set)
	first.UID, second.UID = "first", "second"
	events := changes(event.Data{Op: event.Deleted, Resource: first}, event.Data{Op: event.Created, Resource: second})
	events[1].Time = events[0].Time.Truncate(time.Second)
	events[0].Time = events[1].Time.Add(485 * time.Millisecond)
	m := messageOf(owners{}, events...)
	if len(m.Stories) != 1 || m.Stories[0].ID != events[1].ID || !m.Stories[0].At.Equal(events[1].Time) {
		t.Errorf("%+v; want the last change %s at %s", m.Stories, events[1].ID, events[1].Time)
	}
}

// TestFilterErrorIsSaid: also if a later change of the object matched.
func TestFilterErrorIsSaid(t *testing.T) {
	web := resource("Deployment", "shop", "web", nil)
	failed := updated(web)
	failed.FilterError = "no such key: spec"
	m := messageOf(owners{}, changes(failed, updated(web))...)
	if want := "The sink's filter failed, so this may not match: no such key: spec"; len(m.Stories) != 1 || m.Stories[0].Note != want {
		t.Errorf("%+v", m.Stories)
	}
}

// TestFieldsAreNet checks that a field that changes often shows its first and its last value.
func TestFieldsAreNet(t *testing.T) {
	web := resource("Deployment", "shop", "web", nil)
	c := func(path, op string, from, to any) event.Change {
		return event.Change{Path: path, Op: op, From: from, To: to, Manager: "m"}
	}
	list := func(names ...string) (list []any) {
		for _, n := range names {
			list = append(list, map[string]any{"name": n})
		}
		return list
	}
	m := messageOf(owners{}, changes(
		updated(web, c("status.replicas", "replace", 1, 2), c("a", "replace", "1", "2"), c("b", "add", nil, "1"), c("c", "remove", "1", nil),
			c("e", "reorder", list("x", "y", "z"), list("y", "x", "z")), c("f", "reorder", list("x", "y"), list("y", "x"))),
		updated(web, c("a", "replace", "2", "3"), c("b", "replace", "1", "2"), c("c", "add", nil, "2"), c("d", "replace", nil, ""),
			c("e", "reorder", list("y", "x", "z"), list("z", "y", "x")), c("f", "reorder", list("y", "x"), list("x", "y")), c("f", "remove", "v", nil)),
	)...)
	want := []Field{
		{"a", "replace", "1", "3", "m"}, {"b", "add", "", "2", "m"}, {"c", "replace", "1", "2", "m"},
		{"e", "reorder", "x, y, z", "z, y, x", "m"}, {"d", "replace", "null", `""`, "m"}, {"f", "remove", "v", "", "m"}, {"status.replicas", "replace", "1", "2", "m"},
	}
	if d := cmp.Diff(want, m.Stories[0].Fields); d != "" {
		t.Errorf("what is wanted comes before the status (-want +got):\n%s", d)
	}
	u := markups[Mattermost]
	if text, err := fit(must(parseTemplate("", u))(t), m, u); err != nil || !strings.Contains(text, "`e`: order `x, y, z` → `z, y, x` by m") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestFieldsAreTheirOwn checks that paths with the same beginning are distinct when they are cut, that a field that
// came and went is not listed, and that a field counts once among the others.
func TestFieldsAreTheirOwn(t *testing.T) {
	web := resource("Deployment", "shop", "web", nil)
	long := strings.Repeat("p", 3*maxPath)
	set := func(path, op string) event.Change { return event.Change{Path: path, Op: op, From: "1", To: "2"} }
	s := messageOf(owners{}, changes(updated(web, set(long+"a", "replace"), set(long+"b", "replace"), set("gone", "add")), updated(web, set("gone", "remove")))...).Stories[0]
	if len(s.Fields) != 2 || s.MoreFields != 0 || s.Fields[0].Path != cut(long, maxPath) {
		t.Errorf("%d fields and %d more: %v", len(s.Fields), s.MoreFields, s.Fields)
	}
	var many []event.Data
	for range 500 {
		var all []event.Change
		for i := range maxFields + 2 {
			all = append(all, set(fmt.Sprint("status.f", i), "replace"))
		}
		many = append(many, updated(web, all...))
	}
	if s = messageOf(owners{}, changes(many...)...).Stories[0]; len(s.Fields) != maxFields || s.MoreFields != 2 {
		t.Errorf("%d fields and %d more, want %d and 2", len(s.Fields), s.MoreFields, maxFields)
	}
}

func TestManyFields(t *testing.T) {
	var all []event.Change
	for i := range 20 {
		all = append(all, event.Change{Path: fmt.Sprint("status.f", i), Op: "add", To: strings.Repeat("x", 500)})
	}
	all = append(all, event.Change{Path: "spec.replicas", Op: "add", To: 1})
	s := messageOf(owners{}, changes(updated(resource("Deployment", "shop", "web", nil), all...))...).Stories[0]
	if len(s.Fields) != maxFields || s.MoreFields != 21-maxFields || s.Fields[0].Path != "spec.replicas" {
		t.Errorf("%d fields and %d more; first %s", len(s.Fields), s.MoreFields, s.Fields[0].Path)
	}
	if got := s.Fields[1].To; utf8.RuneCountInString(got) != maxValue+1 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long value is %q", got)
	}
}

// TestOwnersOutliveWindows: a rollout that takes longer than a window still belongs to one owner.
func TestOwnersOutliveWindows(t *testing.T) {
	k := owners{}
	set := resource("ReplicaSet", "shop", "web-a", &event.Owner{Kind: "Deployment", Name: "web", UID: "d"})
	pod := func(n string) event.Data {
		return updated(resource("Pod", "shop", n, &event.Owner{Kind: "ReplicaSet", Name: "web-a", UID: set.UID}))
	}
	messageOf(k, changes(updated(set))...)
	m := messageOf(k, changes(pod("1"), pod("2"))...)
	if len(m.Stories) != 1 || m.Stories[0].Kind != "Deployment" || m.Stories[0].Name != "web" {
		t.Errorf("%+v", m.Stories)
	}
	for i := range 3 * maxOwners {
		r := event.Resource{UID: fmt.Sprint(i), Owner: &event.Owner{UID: fmt.Sprint(i + 1)}}
		k.learn(&r)
	}
	if len(k) > maxOwners {
		t.Errorf("%d owners are known", len(k))
	}
	ring := owners{"a": {UID: "b"}, "b": {UID: "a"}}
	ring.root(event.Owner{UID: "a"}) // must return
}

// TestSummaryIsBounded checks that a summary stays small, counts everything, and keeps prominent changes.
func TestSummaryIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s summary
	k := owners{}
	long := strings.Repeat("ü", 100_000)
	for i := range 20_000 {
		d := event.Data{Op: event.Updated, Resource: resource(fmt.Sprint("Kind", r.IntN(200)), "shop", fmt.Sprint("o", r.IntN(5000)), nil)}
		if r.IntN(2) == 0 {
			d.Resource.Owner = &event.Owner{Kind: "K", Name: "o", UID: fmt.Sprint("owner-", r.IntN(100))}
		}
		if i%1000 == 0 {
			d.Changes = []event.Change{{Path: long, Op: "replace", From: long, To: map[string]any{"a": long}, Manager: long}}
		}
		e := changes(d)[0]
		s.add(&sink.Message{Event: e}, k, nil)
	}
	gone := changes(event.Data{Op: event.Deleted, Resource: resource("Deployment", "shop", "the-one", nil)})[0]
	s.add(&sink.Message{Event: gone}, k, nil)
	m := s.message(k, sample)
	sum := m.More
	for _, st := range m.Stories {
		sum += st.Changes
	}
	if m.Total != 20_001 || sum != m.Total {
		t.Errorf("%d changes, of which %d are accounted for", m.Total, sum)
	}
	if len(s.stories) > maxStories+maxProminent || len(s.counts) > maxCounts+8 || m.Stories[0].Name != "the-one" {
		t.Errorf("%d stories, %d counts, first %s", len(s.stories), len(s.counts), m.Stories[0].Title)
	}
	bytes := 0
	for _, st := range s.stories {
		if len(st.members) > maxMembers || len(st.owned) > maxCounts+8 {
			t.Errorf("a story of %d members, %d counts", len(st.members), len(st.owned))
		}
		for _, mem := range st.members {
			for _, f := range mem.fields {
				bytes += len(f.Path) + len(f.From) + len(f.To) + len(f.Manager)
			}
		}
	}
	if bytes > 500<<10 {
		t.Errorf("texts of %d bytes", bytes)
	}
	// It may have to be sent again.
	if d := cmp.Diff(m, s.message(k, sample), cmp.AllowUnexported(Message{}, Story{})); d != "" {
		t.Errorf("the second time it says something else:\n%s", d)
	}
}

// TestFits checks that a message stays within the service's limits, however long names and values are, and that it
// says what it leaves out.
func TestFits(t *testing.T) {
	evil := strings.Repeat("&<@`*_[", 60)
	var data []event.Data
	for i := range 60 {
		r := resource("Deployment", "shop", fmt.Sprint(evil[:200], i), nil)
		d := updated(r)
		for f := range 10 {
			d.Changes = append(d.Changes, event.Change{Path: fmt.Sprint("spec.f", f, evil), Op: "replace", From: evil, To: evil, Manager: evil})
		}
		data = append(data, d)
	}
	one := changes(data[:1]...)
	for service, u := range markups {
		for name, events := range map[string][]*event.Event{"one": one, "many": changes(data...)} {
			m := messageOf(owners{}, events...)
			s, err := fit(must(parseTemplate("", u))(t), m, u)
			if err != nil {
				t.Errorf("%s, %s: %v", service, name, err)
				continue
			}
			if n := u.length(s); n > u.limit || n == 0 {
				t.Errorf("%s, %s: %d, of at most %d", service, name, n, u.limit)
			}
			if !strings.Contains(s, " more ") && !strings.Contains(s, "cut: too long") {
				t.Errorf("%s, %s: does not say that something is left out: %s", service, name, s)
			}
			if service == email || service == others {
				continue
			}
			body := must(target{service: service, chat: "-1"}.payload(m, s))(t)
			if most := map[Service]int{Teams: 28 << 10, Discord: 20_000, Telegram: 30_000}[service]; most > 0 && len(body) > most {
				t.Errorf("%s, %s: a body of %d bytes", service, name, len(body))
			}
		}
	}
}

// TestOwnTemplate checks that a template's literal text is unchanged, and that its output is escaped.
func TestOwnTemplate(t *testing.T) {
	e := changes(updated(resource("Deployment", "shop", "a*b<@U1>", nil), event.Change{Path: "p", Op: "add", To: "`"}))
	for service, want := range map[Service]string{
		Slack:      "*hi* a∗b&lt;@\u200bU1&gt; `ˋ` <https://x/?a&amp;b|a∗b&lt;@\u200bU1&gt;> 🔵 1",
		Mattermost: "*hi* a\\*b\\<@\u200bU1\\> `ˋ` [a\\*b\\<@\u200bU1\\>](https://x/?a&b) 🔵 1",
		Telegram:   "*hi* a*b&lt;@\u200bU1&gt; <code>`</code> <a href=\"https://x/?a&amp;b\">a*b&lt;@\u200bU1&gt;</a> 🔵 1",
		others:     "*hi* a*b<\u200b@\u200bU1> ` https://x/?a&b 🔵 1",
	} {
		u := markups[service]
		tmpl, err := parseTemplate(`{{define "name"}}{{.Name}}{{end}}{{range .Stories}}*hi* {{template "name" .}} {{range .Fields}}{{code .To}}{{end}} {{link .Name "https://x/?a&b"}} {{icon .Op}}{{end}} {{.Total}}`, u)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fit(tmpl, messageOf(owners{}, e...), u); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", service, got, err, want)
		}
	}
	tmpl := must(parseTemplate(`{{range .Stories}}{{printf "%0100000d" 1}}{{end}}`, markups[Telegram]))(t)
	if _, err := fit(tmpl, messageOf(owners{}, e...), markups[Telegram]); err == nil {
		t.Error("a text that cannot be cut is sent")
	}
}

// TestLinkWithoutADomain: Discord refuses messages whose url has no domain, so every message would fail.
func TestLinkWithoutADomain(t *testing.T) {
	for base, want := range map[string]string{
		"http://tattler:8080": `{"embeds":[{"color":1,"description":"[show](http://tattler:8080/changes/x)\nbody","title":"title"}],"allowed_mentions":{"parse":[]}}`,
		"http://t.example":    `{"embeds":[{"color":1,"description":"body","title":"title","url":"http://t.example/changes/x"}],"allowed_mentions":{"parse":[]}}`,
	} {
		m := &Message{Title: "title", Link: Options{BaseURL: base}.link("x")}
		var got, wanted struct{ Embeds []jsonObject }
		if err := errors.Join(json.Unmarshal(must(target{service: Discord}.payload(m, "body"))(t), &got), json.Unmarshal([]byte(want), &wanted)); err != nil {
			t.Fatal(err)
		}
		delete(got.Embeds[0], "color")
		delete(wanted.Embeds[0], "color")
		if d := cmp.Diff(wanted, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", base, d)
		}
	}
}

func TestParts(t *testing.T) {
	for _, tc := range []struct {
		why, text string
		want      []string
	}{
		{"short", "ab\ncd", []string{"ab\ncd"}},
		{"at the ends of lines", "abcd\nefgh\nij", []string{"abcd", "efgh\nij"}},
		{"within a long one", "ab\ncdefghijklmn", []string{"ab", "cdefghi", "jklmn"}},
		{"nothing", "", nil},
	} {
		if d := cmp.Diff(tc.want, parts(tc.text, 7)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, d)
		}
	}
}

// TestShort checks the lower limits of some shoutrrr services.
func TestShort(t *testing.T) {
	var held summary
	for i, m := range sinktest.Messages(0, 200) {
		e := *m.Event
		e.Data.Resource.UID = fmt.Sprint("uid-", i) // each is a story
		e.Data.Resource.Kind = fmt.Sprint("AKindWithALongName", i%60)
		held.add(&sink.Message{Event: &e}, owners{}, nil)
	}
	for address, most := range map[string]int{
		"pushover://shoutrrr:token@user/": 1024, "pagerduty://events.pagerduty.com/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee": 1024 - 300, "ntfy://host/topic": 3500,
	} {
		s := must(New("tattler/test", Options{URL: address}))(t)
		text := must(fit(s.template, held.message(owners{}, s.o.link), s.target.markup()))(t)
		if len(text) > most || len(text) == 0 {
			t.Errorf("%s: %d bytes", address, len(text))
		}
		_ = s.Close(t.Context())
	}
}

// TestIcons: every operation has an icon.
func TestIcons(t *testing.T) {
	for _, op := range []event.Op{event.Snapshot, event.Created, event.Updated, event.Deleted, event.Entered, event.Left, event.Gap, event.Converted, event.Absent} {
		if icons[string(op)] == "" {
			t.Errorf("%s has no icon", op)
		}
	}
}

// TestAbsenceBound: how long Tattler was not running is an upper bound, and is rounded up; other times are rounded.
func TestAbsenceBound(t *testing.T) {
	for reason, want := range map[string]string{event.AbsenceStopped: "for at most 37s,", event.AbsenceUnreachable: "for 36s,"} {
		if got := absence(&event.Absence{Reason: reason}, 36129*time.Millisecond); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
	}
}
