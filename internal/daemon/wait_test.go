package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestAwayAtStart: an API server that is away at the start, or is starting, is waited for: with a new journal, after a restart, and
// where the journal's name makes the daemon ask which cluster it is. Nothing is lost, and the log says so seldom.
func TestAwayAtStart(t *testing.T) {
	for why, away := range map[string]func(s *informertest.Server) (back func()){
		"down": func(s *informertest.Server) func() {
			s.SetDown(true)
			return func() { s.SetDown(false) }
		},
		"starting": func(s *informertest.Server) func() {
			s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				informertest.Refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "starting")
				return true
			})
			return func() { s.Intercept(nil) }
		},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, dir := newRig(t), t.TempDir()
				for _, again := range []bool{false, true} {
					r.put("a", fmt.Sprint(again))
					back := away(r.server)
					d := r.daemon(dir, Options{})
					d.pass(9 * time.Minute)
					select {
					case err := <-d.ended:
						t.Fatalf("again %t: it ended: %v", again, err)
					default:
					}
					if s := d.status(); s.Settled || s.Away == "" || s.AwaySince.IsZero() {
						t.Errorf("again %t: while it is away: %+v", again, s)
					}
					if n := strings.Count(d.log.String(), "level=ERROR"); n != 1 {
						t.Errorf("again %t: logged %d errors:\n%s", again, n, d.log.String())
					}
					back()
					d.pass(time.Minute)
					r.put("b", fmt.Sprint(again))
					d.pass(time.Minute)
					if s := d.status(); !s.Settled || s.Away != "" || len(s.Streams) != 1 || s.Streams[0].Gaps > 0 {
						t.Errorf("again %t: once it is back: %+v", again, s)
					}
					d.stop()
				}
				want := "test snapshot a, test created b, test updated a, test absent stopped, test updated b"
				if got := strings.Join(recordedIn(t, filepath.Join(dir, "journal.db"), journal.Query{}), ", "); got != want {
					t.Errorf("recorded %s\nwant %s", got, want)
				}
			})
		})
	}
}

// TestOtherNameAway: the request that a new name of the cluster takes is repeated, too.
func TestOtherNameAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
		r.server.Serve(namespaces, "Namespace")
		r.server.Put(namespaces, "", "kube-system", nil)
		d := r.daemon(dir, Options{})
		d.pass(time.Minute)
		d.stop()
		r.server.SetDown(true)
		d = r.daemonOf("renamed", dir, Options{})
		d.pass(5 * time.Minute)
		if s := d.status(); s.Starting != "waiting for the API server" || s.Cluster != "renamed" {
			t.Errorf("%+v", s)
		}
		r.server.SetDown(false)
		d.pass(time.Minute)
		if s := d.status(); s.Starting != "" || !s.Settled {
			t.Errorf("%+v", s)
		}
		d.stop()
	})
}

// TestRefusedAtStart: what waiting does not mend ends the start at once.
func TestRefusedAtStart(t *testing.T) {
	for _, code := range []int32{http.StatusUnauthorized, http.StatusForbidden} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				informertest.Refuse(w, code, metav1.StatusReason(http.StatusText(int(code))), "not for you")
				return true
			})
			began := time.Now()
			if err := r.run(t.TempDir(), func() {}); err == nil || time.Since(began) > time.Minute {
				t.Errorf("%d: after %s: %v", code, time.Since(began), err)
			}
		})
	}
}

// TestBegin: what must be known first is asked for until it is known, or cannot be. Nothing is made before.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir, tries := newRig(t), t.TempDir(), 0
		d := r.daemonOf("", dir, Options{Begin: func(context.Context) (string, error) {
			if tries++; tries < 5 {
				return "", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return "derived", nil
		}})
		if s := d.status(); s.Starting != "waiting for the API server" || s.Cluster != "" {
			t.Errorf("%+v", s)
		}
		if exists(filepath.Join(dir, "journal.db")) || exists(filepath.Join(dir, "key")) {
			t.Error("there are files already")
		}
		d.pass(time.Minute)
		if s := d.status(); s.Starting != "" || !s.Settled || s.Cluster != "derived" {
			t.Errorf("%+v", s)
		}
		d.stop()

		never := errors.New("no such kind")
		err := Run(t.Context(), Options{Begin: func(context.Context) (string, error) { return "", never }, Journal: filepath.Join(dir, "other.db"), Key: filepath.Join(dir, "key")})
		if !errors.Is(err, never) || exists(filepath.Join(dir, "other.db")) {
			t.Errorf("it cannot begin: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = Run(ctx, Options{Begin: func(context.Context) (string, error) { return "", syscall.ENOSPC }})
		if err != nil {
			t.Errorf("stopped while it waits: %v", err)
		}
	})
}

// TestOpenOnFullDisk: the files of sinks are opened again until there is space.
func TestOpenOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tries := newRig(t), 0
		d := r.daemon(t.TempDir(), Options{Open: func() error {
			if tries++; tries < 5 {
				return fmt.Errorf("sink x: %w", syscall.ENOSPC)
			}
			return nil
		}})
		if s := d.status(); s.Starting != "waiting for space on the disk" {
			t.Errorf("%+v", s)
		}
		d.pass(time.Minute)
		if s := d.status(); s.Starting != "" || !s.Settled || tries != 5 {
			t.Errorf("after %d tries: %+v", tries, s)
		}
		d.stop()
	})
}

// TestComplaint: the log repeats a cause seldom, and another one soon.
func TestComplaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c complaint
		n := 0
		for i := range 180 { // a quarter of an hour
			if c.due("") { // of a reason that has no name
				n++
			}
			if i == 100 && c.due("space on the disk") {
				n += 100
			}
			<-time.After(5 * time.Second)
		}
		if n != 102 {
			t.Errorf("%d", n)
		}
	})
}
