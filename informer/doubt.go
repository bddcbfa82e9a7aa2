package informer

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A version that is not behind ours proves little: a server that was restored from a backup may have overtaken it. So
// after every failure the three objects with the highest versions are requested. An older one proves another history.
// A missing one must be deleted by the watch before it reaches the server's version, or the history is another.
// Without the right to get objects, only versions are compared.

// sighting is an object as it was last seen.
type sighting struct {
	key     store.Key
	uid, rv string
}

// witnesses are the objects with the highest versions, the highest last. After a failure they are asked
// for: another history of the server lacks them, or has them as they were before, even where its version
// is not behind ours. Only one that changed them all again escapes this.
type witnesses []sighting

// maxWitnesses bounds how many objects are asked for after a failure: one alone may be the one that changes
// all the time, in any history.
const maxWitnesses = 3

// saw notes an object that is newer than all before.
func (w *witnesses) saw(s sighting) {
	w.lost(s.key)
	*w = append(*w, s)
	w.trim()
}

// listed notes an object of a list, which has no order.
func (w *witnesses) listed(s sighting) {
	w.lost(s.key)
	i := len(*w)
	for i > 0 && wire.Older(s.rv, (*w)[i-1].rv) {
		i--
	}
	*w = slices.Insert(*w, i, s)
	w.trim()
}

// lost forgets an object.
func (w *witnesses) lost(k store.Key) {
	*w = slices.DeleteFunc(*w, func(s sighting) bool { return s.key == k })
}

func (w *witnesses) trim() {
	if n := len(*w) - maxWitnesses; n > 0 {
		*w = slices.Delete(*w, 0, n)
	}
}

// doubt implements reflector.Reflector.Doubt.
func (s *stream) doubt(ctx context.Context) (bool, error) {
	s.missing = nil
	for _, w := range slices.Backward(s.witnesses) {
		raw, err := s.source.cluster.Get(ctx, request.Path(s.source.served(), w.key.Namespace, w.key.Name), nil)
		if notFound(err) {
			s.missing = append(s.missing, w)
			continue
		}
		if err != nil {
			break // we may not, or it does not answer: the watch will tell
		}
		m, err := wire.ReadMeta(wire.JSON, raw)
		switch {
		case err != nil:
		case m.UID != w.uid:
			s.missing = append(s.missing, w)
		case wire.Older(m.ResourceVersion, w.rv):
			return false, reflector.ErrRewritten
		}
	}
	return len(s.missing) > 0, nil
}

// notFound tells that an API server says that an object is not there, and not a proxy before it.
func notFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// Settle implements reflector.Sink: what the server did not have must be gone here as well by now.
func (s *stream) Settle() error {
	missing := s.missing
	s.missing = nil
	for _, w := range missing {
		if v := s.store.Get(w.key); v != nil && v.UID() == w.uid {
			return reflector.ErrRewritten
		}
	}
	return nil
}
