package informer

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer/internal/request"
)

// parking is what is wanted of a stream that is Parked. One at a time works on such a stream: its run,
// which is about to return, Retire or Retry. What is asked for meanwhile is left to that one.
type parking struct {
	idle        bool // nobody works on it
	retire, run bool // wanted; retire first
}

// served tells whether the kind may be served although its collection is not found: a proxy, or an API server that
// starts, answers like that too. Discovery decides; who may not read that has to believe the 404.
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

// wakeUp has a parked stream run again. Anybody may call it.
func (s *stream) wakeUp() {
	s.mu.Lock()
	if s.status.State != Parked {
		s.mu.Unlock()
		return
	}
	// Who waits for the stream from now on must not take its end for the new one's.
	s.status.State, s.status.Err, s.status.Since = Starting, nil, time.Now()
	if s.unlook != nil {
		s.unlook()
	}
	s.parking.run = true
	mine := s.parking.idle
	s.parking.idle = false
	s.mu.Unlock()
	if mine {
		s.rest()
	}
}

// look tells whether the stream is parked, so that its run is to look for the kind. Who wakes the stream
// up before ends that.
func (s *stream) look(end func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlook = end
	return s.status.State == Parked
}

// retire has a parked stream drop its objects. Anybody may call it.
func (s *stream) retire() {
	s.mu.Lock()
	if s.status.State != Parked {
		s.mu.Unlock()
		return
	}
	s.parking.retire = true
	mine := s.parking.idle
	s.parking.idle = false
	s.mu.Unlock()
	if mine {
		s.rest()
	}
}

// rest does what is wanted of a stream that nobody else works on, and ends the work on it.
func (s *stream) rest() {
	for {
		s.mu.Lock()
		want := s.parking
		s.parking = parking{idle: !want.retire && !want.run}
		s.mu.Unlock()
		if want.retire {
			s.drop()
		}
		switch {
		case want.run && s.rerun():
			return // that ends here, too
		case !want.retire && !want.run:
			return
		}
	}
}

// rerun starts a stream again; it does not where its source is closed.
func (s *stream) rerun() bool {
	if objects, _ := s.store.Stat(); objects > 0 {
		s.noteGap(ReasonGone)
	}
	if s.source.cluster.relaunch(s) {
		return true
	}
	s.update(func(st *Status) { st.State, st.Since = Stopped, time.Now() })
	return false
}

// drop tells of all objects of a kind that is gone as deleted.
func (s *stream) drop() {
	if objects, _ := s.store.Stat(); objects == 0 {
		return
	}
	s.noteGap(ReasonGone)
	s.expect, s.unverified = nil, false // nothing is left to compare
	s.Begin(false)
	s.Live(s.store.Version())
}
