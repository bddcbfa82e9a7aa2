package doctor

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// action returns what the only finding of a check says to do.
func action(t *testing.T, x *examination, check string) string {
	t.Helper()
	level(t, x, check) // there is only one
	for _, f := range x.findings {
		if f.Check == check {
			return f.Action
		}
	}
	return ""
}

// TestUncounted: what no right allows to count is unknown, and not 0.
func TestUncounted(t *testing.T) {
	s := serve(t)
	for _, kind := range []string{"secrets", "configmaps", "namespaces"} {
		s.denied["list "+kind] = true
	}
	o, _ := s.options(t, "")
	x := s.examine(t, o)
	for _, check := range []string{"journal.growth", "memory.limit"} {
		if l, title := level(t, x, check); l != Note || !strings.Contains(title, "the objects were not counted") {
			t.Errorf("%s: %s: %s", check, l, title)
		}
	}
}

// TestReserve: a daemon makes the reserve in its first minutes; it is missing only after that.
func TestReserve(t *testing.T) {
	s := serve(t)
	for _, tc := range []struct {
		age     time.Duration
		reserve int64
		want    Level
	}{
		{time.Second, 0, Note}, {time.Hour, 0, Warning}, {time.Second, journal.DefaultReserve, OK},
	} {
		o, _ := s.options(t, "")
		set, err := o.Setup.Load()
		if err != nil {
			t.Fatal(err)
		}
		o.host.place = func(string) (journal.Place, error) { return journal.Place{Dir: s.dir, Reserve: tc.reserve}, nil }
		x := &examination{o: o, setup: set, host: o.host.orThis(), status: &control.Status{Started: time.Now().Add(-tc.age)}}
		x.place()
		if l, title := level(t, x, "journal.reserve"); l != tc.want {
			t.Errorf("%+v: %s: %s", tc, l, title)
		}
	}
}

// TestAdvice: the advice fits the cause.
func TestAdvice(t *testing.T) {
	s := serve(t)
	for _, tc := range []struct {
		code int32
		want string
	}{
		{http.StatusUnauthorized, "Renew the credentials"}, {http.StatusInternalServerError, "Check the server's log"},
	} {
		refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			informertest.Refuse(w, tc.code, metav1.StatusReasonUnknown, "no")
		}))
		s.point(t, refuses.URL)
		o, _ := s.options(t, "")
		if got := action(t, s.examine(t, o), "server.reachable"); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%d: %s", tc.code, got)
		}
		refuses.Close()
	}

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	s.point(t, secure.URL)
	o, _ := s.options(t, "sinks:\n- name: hook\n  webhook: {url: "+secure.URL+"}\n")
	x := s.examine(t, o)
	for check, want := range map[string]string{"server.reachable": "certificate authority", "sinks.reachable": "tls.ca"} {
		if got := action(t, x, check); !strings.Contains(got, want) {
			t.Errorf("%s: %s", check, got)
		}
	}
}

// TestInterrupted: an examination that ends early says so, and prints no findings.
func TestInterrupted(t *testing.T) {
	s := serve(t)
	o, out := s.options(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), "interrupted") || out.Len() != 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
