package informer

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer/internal/request"
)

// served implements reflector.Reflector.Served: a proxy, or an API server that starts, may answer 404 for a kind that is
// served. Discovery decides; a client that may not read it has to accept the 404.
func (s *stream) served(ctx context.Context) bool {
	gvr := s.source.served()
	raw, err := s.source.cluster.Get(ctx, request.GroupVersionPath(gvr.GroupVersion()), nil)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return false
	case err != nil:
		return true
	}
	var known struct {
		Resources []struct {
			Name string `json:"name"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return true
	}
	for _, r := range known.Resources {
		if r.Name == gvr.Resource {
			return true
		}
	}
	return false
}

// retry makes a parked stream list again, and its source request this version of the API group unless it is empty. From
// then on, waiting for the stream does not return the error with which it was parked. Only a parked stream lists under the
// new version, with a gap; one that is watching would go on without either.
func (s *stream) retry(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.State == Parked {
		if version != "" {
			s.source.move(version)
		}
		s.status.State, s.status.Err, s.status.Since = Starting, nil, time.Now()
		s.retrying = true
		s.reflector.Retry()
	}
}

// retire makes a parked stream drop its objects.
func (s *stream) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.State == Parked {
		s.reflector.Retire()
	}
}

// hurry makes a stream that waits after a refusal try again at once.
func (s *stream) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reflector != nil {
		s.reflector.Hurry()
	}
}
