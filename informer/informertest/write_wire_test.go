package informertest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// send writes by plain HTTP and returns the status and the body.
func send(t *testing.T, s *informertest.Server, method, uri, contentType, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://x"+uri, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := s.Config().Transport.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return http.StatusText(resp.StatusCode) + " " + string(b)
}

// TestCustomWrites: custom resources by plain HTTP; their bodies are stored unchanged.
func TestCustomWrites(t *testing.T) {
	const (
		one    = "/apis/example.com/v1/namespaces/n/widgets/w"
		all    = "/apis/example.com/v1/namespaces/n/widgets"
		merge  = "application/merge-patch+json"
		widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"%s},"spec":{"size":%s},"status":{"ready":%s}}`
	)
	body := func(more, size, ready string) string {
		b := strings.Replace(widget, "%s", more, 1)
		return strings.Replace(strings.Replace(b, "%s", size, 1), "%s", ready, 1)
	}
	stored := func(generation, rv, size, status string) string {
		return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","generation":` + generation +
			`,"name":"w","namespace":"n","resourceVersion":"` + rv + `","uid":"uid-3"},"spec":{"size":` + size + `}` + status + "}\n"
	}
	for _, c := range []struct {
		why         string
		status      bool // the kind has the status subresource
		method, uri string
		how, body   string
		want        string
		setup       string // "-": there is no widget yet; otherwise a patch of its status, if not empty
	}{
		{"a number beyond a float's precision, and no status: it has a subresource", true, "POST", all, "", body("", "9007199254740993", "true"),
			"Created " + stored("1", "1003", "9007199254740993", ""), "-"},
		{"without the subresource, a status is a field", false, "POST", all, "", body("", "1", "true"),
			"Created " + stored("1", "1003", "1", `,"status":{"ready":true}`), "-"},
		{"whose changes increase the generation", false, "PATCH", one, merge, `{"status":{"ready":false}}`,
			"OK " + stored("2", "1004", "1", `,"status":{"ready":false}`), ""},
		{"an update needs a version", true, "PUT", one, "application/json", body("", "2", "true"),
			`Unprocessable Entity {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Widget.example.com \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"`, ""},
		{"and does not change the status", true, "PUT", one, "application/json", body(`,"resourceVersion":"1004"`, "2", "false"),
			"OK " + stored("2", "1005", "2", `,"status":{"ready":true}`), `{"status":{"ready":true}}`},
		{"an update of the status changes nothing else", true, "PUT", one + "/status", "application/json", body(`,"resourceVersion":"1003","labels":{"a":"b"}`, "2", "true"),
			"OK " + stored("1", "1004", "1", `,"status":{"ready":true}`), ""},
		{"the status is read with the object", true, "GET", one + "/status", "", "", "OK " + stored("1", "1003", "1", ""), ""},
		{"no subresource", false, "PATCH", one + "/status", merge, `{}`, "Not Found 404 page not found", ""},
		{"nor one of another name", true, "PATCH", one + "/scale", merge, `{}`, "Not Found 404 page not found", ""},
		{"no strategic patch of a custom kind", true, "PATCH", one, "application/strategic-merge-patch+json", `{}`,
			`Unsupported Media Type {"kind":"Status"`, ""},
		{"nor protobuf", true, "POST", all, "application/vnd.kubernetes.protobuf", "k8s", `Unsupported Media Type {"kind":"Status"`, ""},
		{"another kind", true, "POST", all, "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`, `Bad Request {"kind":"Status"`, ""},
		{"not JSON", true, "POST", all, "", `{`, `Bad Request {"kind":"Status"`, ""},
		{"another name", true, "PATCH", one, merge, `{"metadata":{"name":"v"}}`, `Bad Request {"kind":"Status"`, ""},
		{"an object is not created under its name", true, "POST", one, "", body("", "1", "true"), `Method Not Allowed {"kind":"Status"`, ""},
		{"a collection is not deleted", true, "DELETE", all, "", "", `Method Not Allowed {"kind":"Status"`, ""},
		{"deleted, with an option in the query", true, "DELETE", one + "?dryRun=All", "", "",
			`OK {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"w","group":"example.com","kind":"widgets","uid":"uid-3"}}`, ""},
		{"a kind that is not served", true, "POST", "/apis/example.com/v1/namespaces/n/gadgets", "", "{}", "Not Found 404 page not found", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := two()
				if c.status {
					s.ServeStatus(widgets)
				}
				if c.setup != "-" {
					send(t, s, "POST", all, "", body("", "1", "true"))
				}
				if strings.HasPrefix(c.setup, "{") {
					send(t, s, "PATCH", one+"/status", merge, c.setup)
				}
				got := send(t, s, c.method, c.uri, c.how, c.body)
				if !strings.HasPrefix(got, c.want) {
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
			})
		})
	}
}
