package auth

import (
	"log/slog"
	"sync"
	"time"
)

// refusalsEvery is how often a log line counts the refusals of one reason.
const refusalsEvery = time.Minute

// The reasons of refusals.
const (
	// RefusedConnections, RefusedRequests and RefusedStreams are too many in all.
	RefusedConnections = "connections"
	RefusedRequests    = "requests"
	RefusedStreams     = "streams"
	// RefusedViewerRequests and RefusedViewerStreams are too many of one viewer.
	RefusedViewerRequests = "viewer_requests"
	RefusedViewerStreams  = "viewer_streams"
	// RefusedAPIRequests and RefusedAPIStreams are too many that read much.
	RefusedAPIRequests = "api_requests"
	RefusedAPIStreams  = "api_streams"
	// RefusedCredentials are missing or invalid, RefusedReview could not be verified.
	RefusedCredentials = "credentials"
	RefusedReview      = "review"
	// RefusedSite is a request for another host, of another site's page, or with another method.
	RefusedSite = "site"
)

// reasons are all of them, with what the log says about them; empty where it says more elsewhere, or where every scan of the
// address would fill it.
var reasons = []struct{ name, text string }{
	{RefusedConnections, "connections to the web page refused: too many are open"},
	{RefusedRequests, "requests to the web page refused: too many are being answered"},
	{RefusedStreams, "live pages refused: too many are open"},
	{RefusedViewerRequests, "requests to the web page refused: too many of one viewer are being answered"},
	{RefusedViewerStreams, "live pages refused: too many of one viewer are open"},
	{RefusedAPIRequests, "requests to the API refused: too many read much"},
	{RefusedAPIStreams, "requests to the API refused: too many long answers are being sent"},
	{RefusedCredentials, ""},
	{RefusedReview, ""},
	{RefusedSite, ""},
}

// Refusal counts what was refused for a reason.
type Refusal struct {
	Reason string
	Count  int64
}

// Refusals count what the page and the API refuse. A log line counts those of a limit, at most once a minute. It is safe for
// concurrent use.
type Refusals struct {
	log *slog.Logger
	mu  sync.Mutex
	of  map[string]*refused
}

// refused are the refusals of one reason.
type refused struct {
	total, since int64     // since the start, and since the last log line
	logged       time.Time // when that was
}

// Add counts a refusal.
func (r *Refusals) Add(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]*refused{}
	}
	of := r.of[reason]
	if of == nil {
		of = &refused{}
		r.of[reason] = of
	}
	of.total++
	of.since++
	text := textOf(reason)
	if now := time.Now(); text != "" && now.Sub(of.logged) >= refusalsEvery {
		r.log.Warn(text, "refused", of.since)
		of.since, of.logged = 0, now
	}
}

func textOf(reason string) string {
	for _, known := range reasons {
		if known.name == reason {
			return known.text
		}
	}
	return ""
}

// All returns the counts of all reasons, also those without a refusal.
func (r *Refusals) All() (all []Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range reasons {
		n := int64(0)
		if of := r.of[known.name]; of != nil {
			n = of.total
		}
		all = append(all, Refusal{known.name, n})
	}
	return all
}
