package informer_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestIdentityEndsWithItsContext: a call ends with its own context, even while another one waits for the server.
func TestIdentityEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			hang := strings.HasSuffix(r.URL.Path, "/kube-system")
			if hang {
				<-r.Context().Done()
			}
			return hang
		})
		c, err := informer.NewCluster(server.Config(), informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		first, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := c.Identity(first)
			done <- err
		}()
		synctest.Wait()
		second, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := c.Identity(second); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second { // of the bubble
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		end()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
