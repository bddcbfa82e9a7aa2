package informer_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
)

// These tests hold what an audit must not mistake for a missed change.

// inSelection returns fields of an object that the label selector app=x selects, or does not.
func inSelection(is bool) map[string]any {
	app := "y"
	if is {
		app = "x"
	}
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": app}}}
}

// whole reads a response to its end, so that later changes do not affect it.
func whole(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, err
}

// TestAuditOfReturningObject: an object leaves the selection while an audit reads its list, and has returned,
// unchanged, when the audit reads it.
func TestAuditOfReturningObject(t *testing.T) {
	audits(t, time.Minute, func(a *audited) {
		a.server.Put(widgets, "n", "c", inSelection(true))
		asked := make(chan struct{}, 10)
		a.instead = func(r *http.Request, ask roundTrips) (*http.Response, error) {
			switch q := r.URL.Query(); {
			case q.Get("limit") != "500" || q.Has("watch"): // not an audit's
				return ask(r)
			case q.Has("fieldSelector"):
				asked <- struct{}{}
				a.server.Put(widgets, "n", "c", inSelection(true))
				return ask(r)
			}
			resp, err := whole(ask(r))
			a.server.Put(widgets, "n", "c", inSelection(false))
			<-time.After(time.Second) // the watch delivers it
			return resp, err
		}
		selection := informer.Selection{Labels: "app=x"}
		a.run(informer.SourceOptions{Selection: selection}, func(_ *informer.Cluster, s *informer.Source) {
			<-time.After(3 * time.Minute)
			if got := a.found(); strings.ContainsAny(got, ":") || len(asked) == 0 {
				a.Errorf("found %s; asked %d times for the object", got, len(asked))
			}
			if st := s.Status()[0]; st.Lists != 1 || st.Epoch != 1 {
				a.Errorf("%d lists, epoch %d", st.Lists, st.Epoch)
			}
		})
	})
}

// refusing is a transform that refuses objects for which no returns true.
func refusing(no func(*unstructured.Unstructured) bool) *informer.Transform {
	return informer.TransformOf("refusing", 1, func(o *unstructured.Unstructured) error {
		if no(o) {
			return errors.New("refused")
		}
		return nil
	})
}

// TestAuditOfRefusedVersion: an object whose newest version the transform refused differs from the server's. A gap
// reported it when it came; no audit relists for it, not even after a restart.
func TestAuditOfRefusedVersion(t *testing.T) {
	audits(t, time.Hour, func(a *audited) {
		o := informer.SourceOptions{Transform: refusing(func(o *unstructured.Unstructured) bool {
			v, _, _ := unstructured.NestedString(o.Object, "spec", "v")
			return o.GetName() == "a" || v == "refused"
		})}
		a.run(o, func(_ *informer.Cluster, s *informer.Source) {
			a.server.Put(widgets, "n", "b", spec("refused"))
			<-time.After(2 * time.Hour)
			if got := a.found(); got != "audit of 2; gap: transform; gap: transform" {
				a.Errorf("found %s", got)
			}
			if st := s.Status()[0]; st.Lists != 1 || st.Epoch != 1 {
				a.Errorf("%d lists, epoch %d", st.Lists, st.Epoch)
			}
		})
		a.run(o, func(_ *informer.Cluster, s *informer.Source) {
			<-time.After(time.Minute)
			if got, st := a.found(), s.Status()[0]; got != "audit of 2" || st.Lists != 0 || st.Epoch != 1 {
				a.Errorf("after a restart: found %s; %d lists, epoch %d", got, st.Lists, st.Epoch)
			}
		})
	})
}

// TestNewFormIsRefused: the kind is served in another form, in which the transform refuses one object. The others are
// read again, and no further audit follows.
func TestNewFormIsRefused(t *testing.T) {
	audits(t, time.Hour, func(a *audited) {
		o := informer.SourceOptions{Transform: refusing(func(o *unstructured.Unstructured) bool {
			_, colored, _ := unstructured.NestedString(o.Object, "spec", "color")
			return o.GetName() == "a" && colored
		})}
		a.run(o, func(c *informer.Cluster, s *informer.Source) {
			a.red(1)
			<-time.After(20 * time.Minute)
			if got := a.found(); got != "audit of 2, reread 1; audit of 2, reread 0; gap: transform; gap: transform" {
				a.Errorf("found %s", got)
			}
			if got, n := colors(a.T, c, s), s.Status()[0].Dropped.Transform; got != " red1" || n != 2 {
				a.Errorf("colors %q, %d versions dropped", got, n)
			}
			<-time.After(3 * time.Hour)
			if got := a.found(); got != "audit of 2" && got != "audit of 2; audit of 2" {
				a.Errorf("later: %s", got)
			}
		})
	})
}
