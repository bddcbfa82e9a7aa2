package config

import (
	"regexp"
	"strings"
	"testing"
)

func TestSinkFromURL(t *testing.T) {
	l := loader()
	for _, tc := range []struct {
		why, address, typ, name string
		is                      func(Options) bool
	}{
		{"a file", "file:changes.jsonl", "file", `^file-[0-9a-f]{8}$`, func(o Options) bool { return o.(*fakeFile).Path == "changes.jsonl" }},
		{"a URL, whole", "https://example.com/x?y=z", "webhook", `^webhook-[0-9a-f]{8}$`, func(o Options) bool { return o.(*fakeHook).URL == "https://example.com/x?y=z" }},
		{"a scheme in another case", "HTTP://example.com", "webhook", `^webhook-[0-9a-f]{8}$`, func(o Options) bool { return o.(*fakeHook).URL == "HTTP://example.com" }},
		{"a URL that another type claims", "https://chat.example.com/w0rd", "chat", `^chat-[0-9a-f]{8}$`, func(o Options) bool { return o.(*fakeHook).URL == "https://chat.example.com/w0rd" }},
		{"a scheme of its own", "chat://w0rd@channel", "chat", `^chat-[0-9a-f]{8}$`, func(o Options) bool { return true }},
		{"stdout", "log:", "log", `^log$`, func(o Options) bool { return o.(*fakeLog).Format == "text" }},
		{"stdout, as everywhere", "-", "log", `^log$`, func(o Options) bool { return o.(*fakeLog).Format == "text" }},
	} {
		s, err := l.SinkFromURL(tc.address)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if s.Type != tc.typ || !regexp.MustCompile(tc.name).MatchString(s.Name) || !tc.is(s.Options) {
			t.Errorf("%s: %+v", tc.why, s)
		}
		if s.From != "now" || s.Retry.Attempts != 3 {
			t.Errorf("%s: no defaults: %+v", tc.why, s)
		}
	}
}

// TestSinkNamesAreStable: a cursor is stored under the name.
func TestSinkNamesAreStable(t *testing.T) {
	name := func(address string) string {
		s, err := loader().SinkFromURL(address)
		if err != nil {
			t.Fatal(err)
		}
		return s.Name
	}
	const pinned = "webhook-54cef8f4" // a new value would make every sink of --to start over
	if got := name("https://example.com/x"); got != pinned {
		t.Errorf("name %s, want %s for ever", got, pinned)
	}
	if name("https://user:word@example.com/x?token=y#z") != pinned {
		t.Error("a new password is a new sink")
	}
	if name("https://example.com/y") == pinned || name("http://example.com/x") == pinned {
		t.Error("two addresses have one name")
	}
	here, opaque := name("file:changes.jsonl"), name("log:arn:a:b")
	t.Chdir(t.TempDir())
	if name("log:arn:a:b?key=value") != opaque {
		t.Error("an address that is not a file has another name in another directory, or with a query")
	}
	if name("file:changes.jsonl") == here {
		t.Error("files in two directories have one name")
	}
}

// TestPlacesHaveNames: the keys of a type's Place make another sink; other keys of a query do not.
func TestPlacesHaveNames(t *testing.T) {
	l := loader()
	for i := range l.Sinks {
		l.Sinks[i].Place = []string{"queue"}
	}
	name := func(address string) string {
		s, err := l.SinkFromURL(address)
		if err != nil {
			t.Fatal(err)
		}
		return s.Name
	}
	a := name("https://user:word@example.com/x?queue=a&token=y")
	if name("https://example.com/x?token=z&queue=a") != a {
		t.Error("a new password is a new sink")
	}
	if name("https://example.com/x?queue=b") == a || name("https://example.com/x?token=a") != "webhook-54cef8f4" {
		t.Error("two places have one name, or none has another than before")
	}
}

func TestSinkFromURLErrors(t *testing.T) {
	for _, tc := range []struct{ why, address, want string }{
		{"no scheme", "changes.jsonl", "want an address that begins with one of chat:, file:, http:, https:, log:; for a file, file:changes.jsonl"},
		{"an unknown one", "kafka://broker/topic", "read --to kafka:…: want an address that begins with one of"},
		{"nothing", "", "want an address"},
		{"no address", "file:", "read --to file:: path: a file sink needs one"},
		{"an address that its type does not take", "chat:", "read --to chat:…: want chat://TOKEN@CHANNEL"},
		{"a wrong URL does not reveal its password", "https://user:w0rd@x/%zz", "read --to https:…: parse"},
	} {
		_, err := loader().SinkFromURL(tc.address)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "w0rd") {
			t.Errorf("%s: %v, want an error that says %q", tc.why, err, tc.want)
		}
	}
}

// TestShorten: in an address whose password contains a slash, the user and the text before the slash look like
// a host.
func TestShorten(t *testing.T) {
	for address, want := range map[string]string{
		"https://user:1337/w0rd@x":       "https:…",
		"https://user:word@example.com/": "https://example.com/…",
		"https://example.com:1/x?y":      "https://example.com:1/…",
	} {
		if got := shorten(address, nil); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	c := parse(t, head+`
sinks:
- name: a
  webhook:
    url: https://user:${file:/run/crlf}@x/${env:SHORT}
    headers: {A: "Bearer ${env:TOKEN}", B: "$${env:TOKEN}", C: "costs $5 {}"}
    secret: ${file:/run/token}
`)
	s := c.Sinks[0]
	o := s.Options.(*fakeHook)
	const token = `s3cr3t/+ "word`
	if o.URL != "https://user:fr0mf1le@x/hunter2" || o.Headers["A"] != "Bearer "+token || o.Headers["B"] != "${env:TOKEN}" ||
		o.Headers["C"] != "costs $5 {}" || o.Secret != "fr0mf1le" {
		t.Errorf("options %+v", o)
	}
	for _, tc := range []struct{ why, text, want string }{
		{"as it is", "Post " + o.URL + ": EOF", "Post https://user:${file:/run/crlf}@x/${env:SHORT}: EOF"},
		{"in quotes", `header "s3cr3t/+ \"word"`, `header "${env:TOKEN}"`},
		{"in a query", "?q=s3cr3t%2F%2B+%22word", "?q=${env:TOKEN}"},
		{"in a path", "/s3cr3t%2F+%20%22word", "/${env:TOKEN}"},
		{"nothing", "connection refused", "connection refused"},
	} {
		if got := s.Hide(tc.text); got != tc.want {
			t.Errorf("%s: Hide(%s) = %s, want %s", tc.why, tc.text, got, tc.want)
		}
	}
}

func TestAdd(t *testing.T) {
	c := Default()
	s, err := loader().SinkFromURL("https://example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(s); err != nil || len(c.Sinks) != 1 {
		t.Errorf("%v, %d sinks", err, len(c.Sinks))
	}
	if err := c.Add(s); err == nil || len(c.Sinks) != 1 {
		t.Errorf("the same address again: %v, %d sinks", err, len(c.Sinks))
	}
}

func TestHideFindsTheLongest(t *testing.T) {
	c := parse(t, head+"sinks:\n- name: a\n  webhook: {url: 'https://x', headers: {A: '${env:SHORT}', B: '${env:LONG}'}}\n")
	if got := c.Sinks[0].Hide("hunter2-and-more, hunter2"); got != "${env:LONG}, ${env:SHORT}" {
		t.Errorf("the rest of a credential that starts like another is shown: %s", got)
	}
}
