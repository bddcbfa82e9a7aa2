package informer_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer"
)

// TestServersDisagree: for a day, two API servers behind one address serve the kind in different forms, as during a slow
// upgrade. Contents are compared repeatedly, at growing intervals, and once more after the servers agree.
func TestServersDisagree(t *testing.T) {
	audits(t, time.Hour, func(a *audited) {
		var asked atomic.Int32
		var agreed atomic.Bool
		a.instead = func(r *http.Request, ask roundTrips) (*http.Response, error) {
			resp, err := ask(r)
			if err != nil || r.URL.Path != "/openapi/v3" || asked.Add(1)%3 == 0 || agreed.Load() {
				return resp, err
			}
			index, err := io.ReadAll(resp.Body)
			if err != nil {
				return nil, err
			}
			resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(index), "?hash=", "?hash=B"))), -1
			return resp, nil
		}
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			<-time.After(24 * time.Hour)
			found := a.found()
			contents, all := strings.Count(found, "reread"), strings.Count(found, "audit")
			if contents < 5 || contents > 20 || all < contents+10 {
				a.Errorf("%d audits in a day, %d of them of contents", all, contents)
			}
			a.red(1)
			agreed.Store(true)
			<-time.After(7 * time.Hour)
			if got := colors(a.T, c, s); got != "red1 red1" {
				a.Errorf("the default is in %q", got)
			}
			<-time.After(7 * time.Hour)
			a.found()
			<-time.After(24 * time.Hour)
			if found := a.found(); strings.Contains(found, "reread") {
				a.Errorf("long after the servers agree: %s", found)
			}
		})
	})
}
