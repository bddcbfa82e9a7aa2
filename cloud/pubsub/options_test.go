package pubsub

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
)

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "topic: " + topic, ""},
		{"a project of a domain", "topic: projects/example.com:shop/topics/changes", ""},
		{"no topic", "{}", "topic: missing"},
		{"a name", "topic: changes", `topic: "changes" is not projects/PROJECT/topics/TOPIC`},
		{"a subscription", "topic: projects/p/subscriptions/s", "topic: "},
		{"too many at a time", "{topic: " + topic + ", parallel: 65}", "parallel: must be between 1 and 64"},
		{"fewer than none", "{topic: " + topic + ", parallel: -1}", "parallel: must be between 1 and 64"},
		{"time goes forward", "{topic: " + topic + ", timeout: -1s}", "timeout: must not be negative"},
		{"a URL for a host", "{topic: " + topic + ", endpoint: 'https://h'}", "endpoint: \"https://h\" is not HOST:PORT"},
		{"no port", "{topic: " + topic + ", emulator: h}", "emulator: \"h\" is not HOST:PORT"},
		{"an emulator with credentials", "{topic: " + topic + ", emulator: 'h:1', credentialsFile: f}", "emulator: excludes"},
		{"an emulator somewhere else", "{topic: " + topic + ", emulator: 'h:1', endpoint: 'h:2'}", "emulator: excludes"},
	} {
		_, err := New("tattler/test", yamltest.Decode[Options](t, tc.text))
		yamltest.Check(t, tc.why, err, tc.want)
	}
}

func TestOptionKeys(t *testing.T) {
	got := yamltest.Load[Options](t, "pubsub", `
topic: projects/test/topics/changes
unordered: true
parallel: 4
credentialsFile: /etc/key.json
endpoint: europe-west1-pubsub.googleapis.com:443
timeout: 3s`)
	want := &Options{
		Topic: topic, Unordered: true, Parallel: 4, CredentialsFile: "/etc/key.json",
		Endpoint: "europe-west1-pubsub.googleapis.com:443", Timeout: 3 * time.Second,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := yamltest.Load[Options](t, "pubsub", "topic: projects/test/topics/changes\nemulator: localhost:8085"); got.Emulator != "localhost:8085" {
		t.Errorf("%+v", got)
	}
}

func TestFromURL(t *testing.T) {
	for _, tc := range []struct {
		address string
		want    *Options
		err     string
	}{
		{"gcppubsub://projects/test/topics/changes", &Options{Topic: topic}, ""},
		{"gcppubsub://projects/test/topics/changes?emulator=h:1&unordered=true", &Options{Topic: topic, Emulator: "h:1", Unordered: true}, ""},
		{"gcppubsub://projects/test/topics/changes?endpoint=h:1&credentialsFile=f", &Options{Topic: topic, Endpoint: "h:1", CredentialsFile: "f"}, ""},
		{"gcppubsub:changes", nil, "want gcppubsub://"},
		{"gcppubsub://user:hush@projects/test/topics/changes", nil, "want gcppubsub://"},
		{"gcppubsub://projects/test/topics/changes?unordered=perhaps", nil, "unordered must be true or false"},
		{"gcppubsub://projects/test/topics/changes?endpoint=a:1&endpoint=b:1", &Options{Topic: topic, Endpoint: "b:1"}, ""},
		{"gcppubsub://projects/test/topics/changes?key=hush", nil, "credentialsFile, emulator, endpoint, unordered"},
	} {
		got, err := FromURL(tc.address)
		yamltest.Check(t, tc.address, err, tc.err)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.address, d)
		}
	}
}
