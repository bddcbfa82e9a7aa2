package informer_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestOverloadCostsNoHistory: a server that refuses watches for a while still has every version afterwards.
func TestOverloadCostsNoHistory(t *testing.T) {
	for _, code := range []int{429, 500, 502, 503, 504} {
		for _, effect := range []informertest.Effect{informertest.Reject, informertest.ErrorEvent} {
			t.Run(fmt.Sprint(code, " effect ", effect), func(t *testing.T) {
				scenario(t, informer.SourceOptions{}, two, func(r *rig) {
					r.want("the first list", twoListed)
					r.server.Misbehave(informertest.Fault{On: informertest.Watches, Effect: effect, Code: code, Times: 7})
					r.server.CloseWatches()
					for i := range 3 {
						r.server.Put(widgets, "n", "a", spec(i+2))
					}
					r.pass(3 * time.Minute)
					if got := without(r.feed.take(), "="); got != "~ a 1001>1003\n~ a 1003>1004\n~ a 1004>1005" {
						r.Errorf("after %d %s: %s", code, http.StatusText(code), got)
					}
					if st := r.source.Status()[0]; st.State != informer.Watching || st.Lists != 1 {
						r.Errorf("status: %+v", st)
					}
				})
			})
		}
	}
}
