package servicebus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink"
)

const shared = "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=hush="

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"a namespace", "{namespace: shop.servicebus.windows.net, entity: changes}", ""},
		{"a connection string", "{connectionString: '" + shared + "', entity: changes}", ""},
		{"one for an entity", "{connectionString: '" + shared + ";EntityPath=changes'}", ""},
		{"a signature", "{connectionString: 'Endpoint=sb://h.example.com;SharedAccessSignature=SharedAccessSignature sig=hush&x=y', entity: changes}", ""},
		{"neither", "{entity: changes}", "namespace: missing"},
		{"both", "{namespace: shop.servicebus.windows.net, connectionString: '" + shared + "', entity: changes}", "namespace: the connectionString already contains one"},
		{"a URL for a host", "{namespace: 'sb://h', entity: changes}", "namespace: "},
		{"no entity", "{namespace: shop.servicebus.windows.net}", "entity: missing"},
		{"no name", "{namespace: shop.servicebus.windows.net, entity: /a}", "entity: "},
		{"another entity", "{connectionString: '" + shared + ";EntityPath=a', entity: b}", "entity: the connectionString is for another"},
		{"a key alone", "{connectionString: hush, entity: changes}", "connectionString: not KEY=VALUE"},
		{"no endpoint", "{connectionString: 'SharedAccessKeyName=send;SharedAccessKey=hush', entity: changes}", "connectionString: its Endpoint"},
		{"no key", "{connectionString: 'Endpoint=sb://h.example.com;SharedAccessKeyName=hush', entity: changes}", "connectionString: must contain"},
		{"too many at a time", "{namespace: a.b, entity: changes, parallel: 65}", "parallel: must be between 1 and 64"},
		{"time goes forward", "{namespace: a.b, entity: changes, timeout: -1s}", "timeout: must not be negative"},
		{"half of a pair", "{namespace: a.b, entity: changes, tls: {cert: a}}", "tls: cert and key belong together"},
		{"no file", "{namespace: a.b, entity: changes, tls: {ca: /nonexistent/ca.pem}}", "tls: ca: open /nonexistent/ca.pem"},
	} {
		_, err := New("tattler/test", yamltest.Decode[Options](t, tc.text))
		yamltest.Check(t, tc.why, err, tc.want)
	}
}

func TestOptionKeys(t *testing.T) {
	got := yamltest.Load[Options](t, "servicebus", `
connectionString: "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=${env:HUSH}"
entity: changes
sessions: true
parallel: 4
timeout: 3s
tls: {ca: a, cert: b, key: c, serverName: d}`)
	want := &Options{
		ConnectionString: "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=" + yamltest.FromEnvironment,
		Entity:           "changes", Sessions: true, Parallel: 4, Timeout: 3 * time.Second,
		TLS: sink.TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := yamltest.Load[Options](t, "servicebus", "namespace: shop.servicebus.windows.net\nentity: changes"); got.Namespace != "shop.servicebus.windows.net" {
		t.Errorf("%+v", got)
	}
}

func TestFromURL(t *testing.T) {
	const host = "shop.servicebus.windows.net"
	for _, tc := range []struct {
		address string
		want    *Options
		err     string
	}{
		{"azureservicebus://" + host + "/changes", &Options{Namespace: host, Entity: "changes"}, ""},
		{"azureservicebus://" + host + "/a/b?sessions=true", &Options{Namespace: host, Entity: "a/b", Sessions: true}, ""},
		{"azureservicebus://send:hu%2Fsh%3D@" + host + "/changes", &Options{
			ConnectionString: "Endpoint=sb://" + host + "/;SharedAccessKeyName=send;SharedAccessKey=hu/sh=", Entity: "changes",
		}, ""},
		{"azureservicebus://send:hush%zz@" + host + "/changes", nil, "want azureservicebus://"},
		{"azureservicebus://hush@" + host + "/changes", nil, "a policy's name and key"},
		{"azureservicebus:changes", nil, "want azureservicebus://"},
		{"azureservicebus://" + host + "/changes?sessions=perhaps", nil, "sessions must be true or false"},
		{"azureservicebus://" + host + "/changes?key=hush", nil, "known are sessions"},
	} {
		got, err := FromURL(tc.address)
		yamltest.Check(t, tc.address, err, tc.err)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.address, d)
		}
	}
}
