package sns

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink"
)

const topic = "arn:aws:sns:eu-west-1:123456789012:changes"

func TestOptions(t *testing.T) {
	of := func(text string) error {
		_, err := New(amazontest.Agent, yamltest.Decode[Options](t, text))
		return err
	}
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "topic: " + topic, ""},
		{"no topic", "{}", "topic: missing"},
		{"a name", "topic: changes", "topic: not the ARN of a topic"},
		{"a queue's ARN", "topic: 'arn:aws:sqs:eu-west-1:1:changes'", "topic: not the ARN of a topic"},
		{"a subscription's ARN", "topic: '" + topic + ":0a1b'", "topic: not the ARN of a topic"},
		{"no region", "topic: 'arn:aws:sns::1:changes'", "topic: not the ARN of a topic"},
	} {
		yamltest.Check(t, tc.why, of(tc.text), tc.want)
	}
	amazontest.Options(t, "topic: "+topic, of)
}

func TestOptionKeys(t *testing.T) {
	got := yamltest.Load[Options](t, "sns", `
topic: "arn:aws:sns:eu-west-1:123456789012:changes"
limit: 1Mi
timeout: 3s
aws: {region: eu-west-1, profile: p, roleARN: "arn:aws:iam::1:role/r", externalID: "${env:HUSH}", endpoint: "https://h"}
tls: {ca: a, cert: b, key: c, serverName: d}`)
	want := &Options{
		Topic: topic, Limit: 1 << 20, Timeout: 3 * time.Second,
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
		{"sns:" + topic, &Options{Topic: topic}, ""},
		{
			"sns:" + topic + ".fifo?endpoint=http://localhost:4566&region=eu-west-1&profile=p&roleARN=arn:aws:iam::1:role/r",
			&Options{Topic: topic + ".fifo", AWS: amazon.Access{Endpoint: "http://localhost:4566", Region: "eu-west-1", Profile: "p", RoleARN: "arn:aws:iam::1:role/r"}}, "",
		},
		{"sns:" + topic + "?secret=hush", nil, "endpoint, profile, region, roleARN"},
		{"sns:" + topic + "?region=a&region=b", &Options{Topic: topic, AWS: amazon.Access{Region: "b"}}, ""},
		{"sns:" + topic + "?%zz", nil, "invalid query"},
	} {
		got, err := FromURL(tc.address)
		yamltest.Check(t, tc.address, err, tc.err)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.address, d)
		}
	}
	o, err := FromURL("sns:changes")
	if err == nil {
		err = o.Validate()
	}
	yamltest.Check(t, "a name", err, "topic: not the ARN")
}
