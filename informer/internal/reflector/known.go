package reflector

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A list that replaces a state of the same epoch asks for one that is not older than what was seen (NotOlderThan): a server
// that would answer from an older watch cache waits until the cache is as new, or refuses, instead of showing a state that is
// over. A server with a current watch cache answers from it, without a quorum read from etcd.
//
// The version is the newest of which anything was received, also by a list that broke off: its objects stay, and an older list
// would delete them. The list asks for the newest state instead, without a version, if the versions may be to blame: if the
// server refuses the version, or has a list that is older; after the history or the watch became uncertain; and if a list was
// followed by another one without a lasting watch in between, because the watch may have reached a server whose cache begins
// later.

// errOlder is a list that is older than the request permits.
const errOlder badList = "the server sent an older list than was asked for"

// saw notes that something of a version was received.
func (r *Reflector) saw(version string) {
	if isVersion(version) && (r.seen == "" || wire.Older(r.seen, version)) {
		r.seen = version
	}
}

// notOlderThan returns the version that the next list must have; empty: the newest.
func (r *Reflector) notOlderThan() string {
	if _, ordered := wire.CompareVersions(r.seen, r.seen); !ordered || r.latest || !r.m.Synced || r.m.relists > 1 {
		return ""
	}
	return r.seen
}

// match returns the parameters of a list that is not older than a version; empty: none.
func match(version string) []string {
	if version == "" {
		return nil
	}
	return []string{"resourceVersion", version, "resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)}
}

// doubtful reports whether a list failed because of the version that it asked for.
func doubtful(err error) bool {
	var st apierrors.APIStatus
	switch {
	case err == nil:
		return false
	case errors.Is(err, errOlder), errors.Is(err, ErrReplaced):
		return true
	case !errors.As(err, &st):
		return false
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return true
	}
	switch st.Status().Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusGone:
		return true
	}
	return false
}
