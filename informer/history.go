package informer

import (
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
)

// An epoch numbers the histories of a server's storage; resource versions are comparable within one. A restored backup
// begins another: the same versions then occur again. The number is a part of what identifies a change, so that two
// processes that watch one server should count alike: only a proof raises it, never an uncertainty (see package reflector).
//
// A replacement concerns the whole storage, but not every stream can prove it: the objects of a quiet kind may be the same
// in both histories. So one proof counts for all. The first stream to prove a replacement begins an epoch, which is one
// more than the storage's highest; the others join it, and list under it, whether they find a proof or not. So the order
// in which they notice does not matter.
//
// Which kinds share a storage is not visible in the API. A kube-apiserver has one etcd for its own kinds and for custom
// resources, except that Events often have one of their own. An aggregated API server has its own storage, perhaps one
// that begins anew at each of its restarts. Those restarts must not disturb all others, and another process may not have
// seen as many. So:
//
//   - A proof by a kind of Kubernetes (a group without a dot, or in k8s.io) counts for every stream of the cluster.
//   - A proof by any other group, and by Events, counts for the streams of that group, and of Events, only.
//
// That errs where only custom resources prove a replacement of the cluster's etcd: other groups then keep their epoch. It
// also errs for an aggregated API server that serves a group in k8s.io from another storage. A change that was delivered
// after the replacement but before the first proof has the old number.

// histories counts the histories of the storages behind a cluster's API server.
type histories struct {
	begun atomic.Uint64 // counts epochs that began

	mu     sync.Mutex
	epochs map[string]int64 // by storage
}

// mainStorage is the storage of Kubernetes' own kinds.
const mainStorage = ""

// storageOf names the storage of a resource.
func storageOf(gr schema.GroupResource) string {
	switch {
	case gr.Resource == "events":
		return "events"
	case !strings.Contains(gr.Group, "."), strings.HasSuffix(gr.Group, ".k8s.io"):
		return mainStorage
	}
	return gr.Group
}

func newHistories(epochs map[schema.GroupResource]int64) *histories {
	h := &histories{epochs: map[string]int64{}}
	for gr, epoch := range epochs {
		h.reach(storageOf(gr), epoch)
	}
	return h
}

// epoch returns the current epoch of a storage.
func (h *histories) epoch(storage string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current(storage)
}

func (h *histories) current(storage string) int64 {
	return max(h.epochs[storage], h.epochs[mainStorage], 1)
}

// reach records that a storage was in an epoch, and reports whether that was unknown.
func (h *histories) reach(storage string, epoch int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch <= h.current(storage) {
		return false
	}
	h.epochs[storage] = epoch
	h.begun.Add(1)
	return true
}

// replaced returns the epoch that follows from for a stream that has proven a replacement, and whether the stream begins
// it: otherwise another one did.
func (h *histories) replaced(storage string, from int64) (epoch int64, begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if current := h.current(storage); current > from {
		return current, false
	}
	h.epochs[storage] = from + 1
	h.begun.Add(1)
	return from + 1, true
}

// nextEpoch returns the epoch of the stream's next list, and reports whether it is another one than before. Proven means
// that the stream has a proof of its own.
func (s *stream) nextEpoch(proven bool) (epoch int64, another bool) {
	c, before := s.source.cluster, s.store.Epoch()
	if !proven {
		epoch = c.histories.epoch(s.storage)
		return epoch, epoch > before
	}
	epoch, begins := c.histories.replaced(s.storage, before)
	if begins {
		c.interruptOutdated()
	}
	return epoch, true
}

// outdated reports whether an epoch has begun that the stream has not joined.
func (s *stream) outdated() bool {
	return s.source.cluster.histories.epoch(s.storage) > s.store.Epoch()
}

// interruptOutdated makes the streams that are not in the current epoch of their storage join it. One that is not
// watching finds out by itself, before it takes anything from the server.
func (c *Cluster) interruptOutdated() {
	c.reflectors(func(st *stream, r *reflector.Reflector) {
		if st.outdated() {
			r.Interrupt(reflector.ErrReplaced)
		}
	})
}

// reflectors calls each with the streams that run.
func (c *Cluster) reflectors(each func(*stream, *reflector.Reflector)) {
	for _, s := range c.open() {
		for _, st := range s.streams {
			st.mu.Lock()
			r := st.reflector
			st.mu.Unlock()
			if r != nil {
				each(st, r)
			}
		}
	}
}
