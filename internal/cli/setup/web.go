package setup

import (
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/rights"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// WebRights returns the rights that the daemon needs to authenticate and authorize the viewers of the web page; nil if the
// page is open, or not served.
func WebRights(w config.Web) []rights.Right {
	if w.Address == "" || !w.Authenticates() {
		return nil
	}
	var all []rights.Right
	if w.Tokens && !w.ReviewsOnly {
		all = append(all, rights.Right{
			Group: "authentication.k8s.io", Resource: "tokenreviews", Verbs: []string{"create"},
			Without: "the web page refuses viewers with bearer tokens",
		})
	}
	return append(all, rights.Right{
		Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"},
		Without: "the web page shows nothing, because it cannot check what viewers may see",
	}, rights.Right{
		Resource: "namespaces", Verbs: []string{"get"},
		Without: "the web page shows nothing to viewers with rights in single namespaces, because it cannot check how old these are",
	})
}

// WebAuth returns the protection of the web page of a configuration. The client's own rights make the reviews.
func WebAuth(w config.Web, client *rest.Config, log *slog.Logger) (*auth.Auth, error) {
	o := webOptions(w)
	o.Log = log
	if w.Authenticates() {
		var err error
		if o.Reviewer, err = auth.Kubernetes(client); err != nil {
			return nil, err
		}
	}
	return auth.New(o)
}

// WebAuthSeveral is WebAuth for several clusters. The first one authenticates viewers, and reviews their access to its
// changes; others do the latter if they have the same users.
func (s *Setup) WebAuthSeveral(log *slog.Logger) (*auth.Auth, error) {
	w := s.Web
	o := webOptions(w)
	o.Log, o.Clusters = log, map[string]auth.Reviewer{}
	for i := range s.Watched {
		c := &s.Watched[i]
		reviewer := auth.Lazy(func() (auth.Reviewer, error) {
			cluster, err := c.Kube.Load()
			if err != nil {
				return nil, err
			}
			return auth.Kubernetes(cluster.Config)
		})
		switch {
		case !w.Authenticates():
		case i == 0:
			o.Reviewer = reviewer
		case c.SameUsers:
			o.Clusters[c.Name] = reviewer
		}
	}
	return auth.New(o)
}

// CheckWeb returns an error if WebAuth would fail, such as for a certificate that cannot be read. It needs no cluster.
func CheckWeb(w config.Web) error { return webOptions(w).Check() }

// CheckWebAlone is CheckWeb that opens no files.
func CheckWebAlone(w config.Web) error { return webOptions(w).Validate() }

func webOptions(w config.Web) auth.Options {
	return auth.Options{
		Address: w.Address, Hosts: w.Hosts, Cert: w.TLS.Cert, Key: w.TLS.Key,
		Tokens: w.Tokens, Audiences: w.Audiences, ClientCA: w.ClientCA,
		RequestHeader: auth.RequestHeader{
			CA: w.RequestHeader.ClientCA, AllowedNames: w.RequestHeader.AllowedNames,
			UserHeaders: w.RequestHeader.UsernameHeaders, UIDHeaders: w.RequestHeader.UIDHeaders,
			GroupHeaders: w.RequestHeader.GroupHeaders, ExtraPrefixes: w.RequestHeader.ExtraHeaderPrefixes,
		},
	}
}
