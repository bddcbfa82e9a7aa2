package run

import (
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/daemon"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// clusters returns the daemon's form of several clusters. Nothing is read or requested yet, so that one with a wrong context
// does not stop the others.
func clusters(s *setup.Setup, log *slog.Logger) (all []daemon.Cluster) {
	for i := range s.Watched {
		w := &s.Watched[i]
		var loaded atomic.Pointer[kube.Cluster]
		c := daemon.Cluster{Name: w.Name, Scopes: w.Scopes, Rights: setup.WebRights(s.WebOf(i))}
		c.Connect = func() (*rest.Config, error) {
			cluster, err := w.Kube.Load()
			if err != nil {
				return nil, err
			}
			loaded.Store(cluster)
			return cluster.Config, nil
		}
		c.Explain = func(err error) error {
			if cluster := loaded.Load(); cluster != nil {
				return cluster.ExplainStart(err)
			}
			return err
		}
		log := log.With("cluster", w.Name)
		c.OnMessage = func(m capture.Message) {
			if cluster := loaded.Load(); cluster != nil {
				logMessage(log, cluster, m)
			}
		}
		all = append(all, c)
	}
	return all
}

// interactive reports whether a credential plugin of some cluster may prompt on the terminal.
func interactive(s *setup.Setup) bool {
	for i := range s.Watched {
		if cluster, err := s.Watched[i].Kube.Load(); err == nil && cluster.Config.ExecProvider != nil {
			return true
		}
	}
	return false
}

// clusterNames returns the names of several clusters.
func clusterNames(s *setup.Setup) (all []string) {
	for i := range s.Watched {
		all = append(all, s.Watched[i].Name)
	}
	return all
}

// rightsOf makes the rights of viewers those of the cluster that authenticates them, for a journal that is named after own.
// In a journal, the own cluster has no name; among the rights, that is the cluster that authenticates.
func rightsOf(next http.Handler, own, authenticates string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(access.Map(r.Context(), func(cluster string) string {
			if cluster == "" {
				cluster = own
			}
			if cluster == authenticates {
				return ""
			}
			return cluster
		})))
	})
}

// newPage returns the page of the daemon's journal, which can be opened once the name of the only cluster is known.
func newPage(s *setup.Setup, b *beginning, journal string, log *slog.Logger) *page {
	unnamed := func() bool { return b.known() == "" }
	return &page{path: journal, log: log, early: unnamed, wrap: func(h http.Handler, own string, known []string) http.Handler {
		name := b.known()
		switch {
		case s.Several():
			name = s.Watched[0].Name
		case !slices.Contains(known, name): // the journal has its earlier name
			name = own
		}
		return rightsOf(h, own, name)
	}}
}

// protect returns the protection of the page. cluster is nil for several.
func protect(s *setup.Setup, cluster *kube.Cluster, log *slog.Logger) (*auth.Auth, error) {
	if cluster == nil {
		return s.WebAuthSeveral(log)
	}
	return setup.WebAuth(s.Web, cluster.Config, log)
}
