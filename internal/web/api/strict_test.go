package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/internal/access"
)

// TestRefused: what would have no effect, or another one than it seems, is an error.
func TestRefused(t *testing.T) { synctest.Test(t, testRefused) }

func testRefused(t *testing.T) {
	h := serve(t, open(t), access.Everything{}, nil)
	for _, tc := range []struct {
		path string
		code int
		says string
	}{
		// Namespaces that must be names.
		{"kinds?namespace=*", http.StatusBadRequest, `namespace: \"*\" is a glob; this path takes names only`},
		{"kinds?namespace=shop&namespace=p?y", http.StatusBadRequest, `namespace: \"p?y\" is a glob`},
		{"kinds?namespace=Shop", http.StatusBadRequest, `\"Shop\" is not a namespace name`},
		{"names?namespace=s*", http.StatusBadRequest, `namespace: \"s*\" is a glob`},
		{"names?namespace=shop,pay", http.StatusBadRequest, "namespace: say one"},
		{"raw/names?namespace=s*", http.StatusBadRequest, `namespace: \"s*\" is a glob`},

		// More than one value.
		{"raw/rows?query=" + url.QueryEscape(`{}{}`), http.StatusBadRequest, "query: there is more after the first value"},
		{"raw/rows?query=" + url.QueryEscape(`{"Limit":1} x`), http.StatusBadRequest, "query: there is more after the first value"},
		{"raw/between?query=" + url.QueryEscape(`{}]`), http.StatusBadRequest, "query: there is more after the first value"},
		{"raw/states?at=2026-03-01T10:05:00Z&query=" + url.QueryEscape(`{}{}`), http.StatusBadRequest, "query: there is more after the first value"},

		// Parameters without a value.
		{"changes?humans", http.StatusBadRequest, "humans: it has no value: say true or false, or leave it out"},
		{"changes?humans=", http.StatusBadRequest, "humans: it has no value: say true or false"},
		{"changes?noise", http.StatusBadRequest, "noise: it has no value: say true or false"},
		{"changes?objects=", http.StatusBadRequest, "objects: it has no value: say true or false"},
		{"raw/schema?resource=deployments&namespaced", http.StatusBadRequest, "namespaced: it has no value: say true or false"},
		{"changes?namespace=", http.StatusBadRequest, "namespace: it has no value: leave it out, or give it one"},
		{"changes?namespace=shop&namespace=", http.StatusBadRequest, "namespace: it has no value"},
		{"changes?namespace=+,+", http.StatusBadRequest, "namespace: it has no value"},
		{"changes?since=+", http.StatusBadRequest, "since: it has no value"},
		{"objects?after=", http.StatusBadRequest, "after: it has no value"},
		{"objects?at=", http.StatusBadRequest, "at: it has no value"},
		{"changes?limit=", http.StatusBadRequest, "limit: it has no value"},
		{"changes?q=", http.StatusBadRequest, "q: it has no value"},
		{"kinds?namespace=", http.StatusBadRequest, "namespace: it has no value"},
		{"raw/rows?query=", http.StatusBadRequest, "query: it has no value"},
		{"raw/contents?seq=", http.StatusBadRequest, "seq: it has no value"},

		// Clusters that the journal does not have.
		{"changes?cluster=nope", http.StatusNotFound, `the journal has no cluster \"nope\": it has test`},
		{"changes?cluster=test&cluster=nope", http.StatusNotFound, `the journal has no cluster \"nope\"`},
		{"objects?cluster=nope", http.StatusNotFound, `the journal has no cluster \"nope\"`},
		{"differences?since=10:00&cluster=nope", http.StatusNotFound, `the journal has no cluster \"nope\"`},
		{"versions?type=deploy/web&cluster=nope", http.StatusNotFound, `the journal has no cluster \"nope\"`},
		{"blame?type=deploy/web&cluster=nope", http.StatusNotFound, `the journal has no cluster \"nope\"`},

		// Ranges without anything between.
		{"changes?after=5&before=3", http.StatusBadRequest, "after is not before before"},
		{"changes?after=5&before=5&order=oldest", http.StatusBadRequest, "after is not before before"},
		{"changes?since=10:05&until=10:05", http.StatusBadRequest, "since is not before until"},
		{"differences?since=10:05&until=10:02", http.StatusBadRequest, "since is not before until"},

		// Sequence numbers and cursors.
		{"raw/history?seq=0", http.StatusBadRequest, `seq: \"0\" is not a sequence number`},
		{"raw/history?seq=-3", http.StatusBadRequest, `seq: \"-3\" is not a sequence number`},
		{"objects?after=web", http.StatusBadRequest, `after: \"web\" is not the next of a page`},
	} {
		if code, text := body(t, h, tc.path); code != tc.code || !strings.Contains(text, tc.says) {
			t.Errorf("%s: %d %.300s, want %d %s", tc.path, code, text, tc.code, tc.says)
		}
	}
	for _, path := range []string{
		"changes?after=5&before=6", // a page may end there
		"changes?cluster=test", "kinds?namespace=shop,pay", "names?namespace=shop", `raw/rows?query={}%20`,
	} {
		if code, text := body(t, h, path); code != http.StatusOK {
			t.Errorf("%s: %d %.300s", path, code, text)
		}
	}
}
