package informer_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// rejects is a transform that fails for objects with a value in spec.v.
func rejects(v any) *informer.Transform {
	return &informer.Transform{Name: "test", Version: 1, Apply: func(u *unstructured.Unstructured) error {
		if is, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "v"); is == v {
			return errors.New("it cannot be transformed")
		}
		return nil
	}}
}

// TestAuditOfUnstorableObject: an object that no list could store either is not a missed change.
func TestAuditOfUnstorableObject(t *testing.T) {
	for _, tc := range []struct {
		name string
		bad  func(*informertest.Server)
	}{
		{"never stored", func(s *informertest.Server) { s.Put(widgets, "n", "c", spec("bad")) }},
		{"stored in an older version", func(s *informertest.Server) { s.Put(widgets, "n", "a", spec("bad")) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			audits(t, time.Hour, func(a *audited) {
				a.run(informer.SourceOptions{Transform: rejects("bad")}, func(c *informer.Cluster, s *informer.Source) {
					tc.bad(a.server)
					<-time.After(10 * time.Hour)
					if got := a.found(); strings.Contains(got, "missed") || !strings.Contains(got, "audit of") {
						t.Errorf("found %s", got)
					}
					if st := s.Status()[0]; st.Epoch != 1 || st.Lists != 1 {
						t.Errorf("epoch %d, %d lists", st.Epoch, st.Lists)
					}
				})
			})
		})
	}
}

// TestAuditEveryForever: the longest possible interval means never.
func TestAuditEveryForever(t *testing.T) {
	audits(t, math.MaxInt64, func(a *audited) {
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			<-time.After(24 * time.Hour)
			if n := s.Status()[0].Audits; n > 1 {
				t.Errorf("%d audits in a day", n)
			}
		})
	})
}

// stalled is a body that is delivered late.
type stalled struct {
	io.ReadCloser
	by *atomic.Int64 // as a time.Duration
}

func (b *stalled) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if by := b.by.Load(); by > 0 {
		<-time.After(time.Duration(by))
	}
	return n, err
}

// TestAuditOfLaterPages: a later page may have a later version; the watch must reach it before its contents count as
// missed.
func TestAuditOfLaterPages(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*informertest.Server) []string // returns the objects of the second page
	}{
		{"updated", func(s *informertest.Server) []string { return []string{s.Put(widgets, "n", "z", spec(2))} }},
		{"deleted", func(s *informertest.Server) []string { s.Delete(widgets, "n", "z"); return nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			audits(t, time.Hour, func(a *audited) {
				for i := range 498 {
					a.server.Put(widgets, "n", fmt.Sprintf("m%03d", i), spec(1))
				}
				a.server.Put(widgets, "n", "z", spec(1))
				var stall atomic.Int64
				a.instead = func(r *http.Request, ask roundTrips) (*http.Response, error) {
					resp, err := ask(r)
					if err == nil && r.URL.Query().Has("watch") {
						resp.Body = &stalled{resp.Body, &stall}
					}
					return resp, err
				}
				a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
					var pages atomic.Int32
					a.server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
						if !r.URL.Query().Has("continue") {
							return false
						}
						pages.Add(1)
						stall.Store(int64(10 * time.Second))
						items := ""
						for _, rv := range tc.change(a.server) {
							u := unstructured.Unstructured{Object: a.server.Objects(widgets)["n/z"]}
							items = fmt.Sprintf(`{"metadata":{"namespace":"n","name":"z","uid":%q,"resourceVersion":%q}}`, u.GetUID(), rv)
						}
						w.Header().Set("Content-Type", "application/json")
						fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":%q},"items":[%s]}`,
							a.server.Version(), items)
						return true
					})
					for pages.Load() == 0 {
						<-time.After(time.Minute)
					}
					a.server.Intercept(nil)
					<-time.After(5 * time.Minute)
					if got := a.found(); strings.Contains(got, ":") || !strings.Contains(got, "audit of 50") {
						t.Errorf("found %s", got)
					}
					if st := s.Status()[0]; st.Epoch != 1 || st.Lists != 1 {
						t.Errorf("epoch %d, %d lists", st.Epoch, st.Lists)
					}
				})
			})
		})
	}
}
