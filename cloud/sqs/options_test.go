package sqs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink"
)

const queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/changes"

func TestOptions(t *testing.T) {
	of := func(text string) error {
		_, err := New(amazontest.Agent, yamltest.Decode[Options](t, text))
		return err
	}
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "queue: " + queue, ""},
		{"an emulator", "queue: http://localhost:4566/000000000000/changes\naws: {region: eu-west-1}", ""},
		{"no queue", "{}", "queue: missing"},
		{"a name", "queue: changes", "queue: must begin with https://"},
		{"an ARN", "queue: 'arn:aws:sqs:eu-west-1:1:changes'", "queue: must begin with https://"},
		{"no name", "queue: https://sqs.eu-west-1.amazonaws.com/", "queue: must end with the queue's account and name"},
		{"a user", "queue: https://hush:hush@sqs.eu-west-1.amazonaws.com/1/q", "queue: must not contain a user"},
		{"a query", "queue: '" + queue + "?a=b'", "queue: must be a host and a path"},
		{"no URL", "queue: 'https://%zz/hush'", "queue: not a URL"},
		{"a region that nobody knows", "queue: http://localhost:4566/000000000000/changes", "aws: region: missing"},
	} {
		yamltest.Check(t, tc.why, of(tc.text), tc.want)
	}
	amazontest.Options(t, "queue: "+queue, of)
}

func TestOptionKeys(t *testing.T) {
	got := yamltest.Load[Options](t, "sqs", `
queue: https://sqs.eu-west-1.amazonaws.com/123456789012/changes
limit: 1Mi
timeout: 3s
aws: {region: eu-west-1, profile: p, roleARN: "arn:aws:iam::1:role/r", externalID: "${env:HUSH}", endpoint: "https://h"}
tls: {ca: a, cert: b, key: c, serverName: d}`)
	want := &Options{
		Queue: queue, Limit: 1 << 20, Timeout: 3 * time.Second,
		AWS: amazon.Access{Region: "eu-west-1", Profile: "p", RoleARN: "arn:aws:iam::1:role/r", ExternalID: yamltest.FromEnvironment, Endpoint: "https://h"},
		TLS: sink.TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestFromURL(t *testing.T) {
	for _, tc := range []struct {
		address string
		want    *Options
		err     string
	}{
		{"sqs://sqs.eu-west-1.amazonaws.com/123456789012/changes", &Options{Queue: queue}, ""},
		{
			"sqs://localhost:4566/0/q?endpoint=http://localhost:4566&region=eu-west-1&profile=p&roleARN=arn:aws:iam::1:role/r",
			&Options{Queue: "https://localhost:4566/0/q", AWS: amazon.Access{Endpoint: "http://localhost:4566", Region: "eu-west-1", Profile: "p", RoleARN: "arn:aws:iam::1:role/r"}}, "",
		},
		{"sqs:changes", nil, "want sqs://"},
		{"sqs://h/1/q?secret=hush", nil, "endpoint, profile, region, roleARN"},
		{"sqs://h/1/q?region=a&region=b", &Options{Queue: "https://h/1/q", AWS: amazon.Access{Region: "b"}}, ""},
	} {
		got, err := FromURL(tc.address)
		yamltest.Check(t, tc.address, err, tc.err)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.address, d)
		}
	}
	o, err := FromURL("sqs://user:hush@sqs.eu-west-1.amazonaws.com/1/q")
	if err == nil {
		err = o.Validate()
	}
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("a user in an address: %v", err)
	}
}

func TestWhere(t *testing.T) {
	for queue, want := range map[string][2]string{
		"https://sqs.eu-west-1.amazonaws.com/1/q":                    {"eu-west-1", ""},
		"https://sqs.cn-north-1.amazonaws.com.cn/1/q":                {"cn-north-1", ""},
		"https://eu-west-1.queue.amazonaws.com/1/q":                  {"eu-west-1", ""},
		"https://vpce-0a1b.sqs.eu-west-1.vpce.amazonaws.com/1/q":     {"eu-west-1", "https://vpce-0a1b.sqs.eu-west-1.vpce.amazonaws.com"},
		"http://localhost:4566/000000000000/q":                       {"", "http://localhost:4566"},
		"https://sqs.eu-west-1.amazonaws.com.evil.example.com/1/foo": {"", "https://sqs.eu-west-1.amazonaws.com.evil.example.com"},
	} {
		u, err := parse(queue)
		if err != nil {
			t.Fatal(err)
		}
		if region, endpoint := where(u); region != want[0] || endpoint != want[1] {
			t.Errorf("%s: %q at %q, want %q", queue, region, endpoint, want)
		}
	}
}
