package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer"
)

// writeAnnotation holds the number of the write that made an object's version.
const writeAnnotation = "soak.tattler.dev/write"

// object identifies an object on the server.
type object struct {
	resource string
	informer.Key
}

func (o object) String() string { return o.resource + " " + o.Namespace + "/" + o.Name }

// outcome is the known result of a write.
type outcome uint8

const (
	unknown outcome = iota // no response, or an ambiguous one: the write may have been accepted
	taken
	refused
)

// write is an attempted write, and the object and version in the server's response.
type write struct {
	object  object
	outcome outcome
	uid, rv string
}

// ledger records every write, for comparison with the versions shown later. Each write has a number, which is
// part of what it writes.
type ledger struct {
	mu     sync.Mutex
	writes []write
	gone   map[string]bool // UIDs of objects whose deletion the server confirmed
	maybe  map[object]int  // deletions without a response
}

func newLedger() *ledger {
	return &ledger{writes: make([]write, 1), gone: map[string]bool{}, maybe: map[object]int{}}
}

// begin records a write that is about to be sent, and returns its number.
func (l *ledger) begin(o object) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, write{object: o})
	return len(l.writes) - 1
}

// next returns the number of the next write.
func (l *ledger) next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.writes)
}

// answered records the server's response to a write.
func (l *ledger) answered(n int, body []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &l.writes[n]
	switch {
	case err == nil:
		a := parse(body)
		w.outcome, w.uid, w.rv = taken, a.Metadata.UID, a.Metadata.ResourceVersion
	case isRefusal(err):
		w.outcome = refused
	}
}

// deleting records a deletion that is about to be sent, deleted the server's response.
func (l *ledger) deleting(o object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maybe[o]++
}

func (l *ledger) deleted(o object, body []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		a := parse(body)
		l.gone[a.Metadata.UID+a.Details.UID] = true // one of them is set
	}
	if err == nil || isRefusal(err) {
		l.maybe[o]--
	}
}

// answer is the relevant part of an object, or of the Status of its deletion.
type answer struct {
	Metadata struct {
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Details struct {
		UID string `json:"uid"`
	} `json:"details"`
}

func parse(body []byte) (a answer) {
	_ = json.Unmarshal(body, &a) // a missing UID fails the checks that need it
	return a
}

// isRefusal reports whether an error proves that a write was not accepted.
func isRefusal(err error) bool {
	var st apierrors.APIStatus
	if !errors.As(err, &st) {
		return false
	}
	switch st.Status().Code {
	case 400, 403, 404, 405, 409, 415, 422:
		return true
	}
	return false
}

// shown is a version that an informer returned.
type shown struct {
	object
	uid, rv string
	write   string // from its annotation
	// leaving says that the object has a deletionTimestamp. Pods get one in a separate version just before
	// their deletion.
	leaving bool
}

func showing(resource string, o metav1.Object) shown {
	return shown{
		object: object{resource, informer.Key{Namespace: o.GetNamespace(), Name: o.GetName()}},
		uid:    string(o.GetUID()), rv: o.GetResourceVersion(), write: o.GetAnnotations()[writeAnnotation],
		leaving: o.GetDeletionTimestamp() != nil,
	}
}

// explain returns an error if no write made the version. Once a write of unknown outcome is shown, it counts as
// accepted, with exactly that version.
func (l *ledger) explain(s shown) error {
	n, err := strconv.Atoi(s.write)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || n < 1 || n >= len(l.writes) {
		return fmt.Errorf("%v at %s: no write is %q", s.object, s.rv, s.write)
	}
	w := &l.writes[n]
	if s.leaving && (l.gone[s.uid] || l.maybe[s.object] > 0) {
		if w.object != s.object || w.outcome == refused || w.outcome == taken && w.uid != s.uid {
			return fmt.Errorf("%v, UID %s, at %s: shown while being deleted, with write %d, which was %+v", s.object, s.uid, s.rv, n, *w)
		}
		return nil
	}
	if w.outcome == unknown {
		w.outcome, w.uid, w.rv = taken, s.uid, s.rv
	}
	if w.outcome == refused || w.object != s.object || w.uid != s.uid || w.rv != s.rv {
		return fmt.Errorf("%v, UID %s, at %s: shown with write %d, which was %+v", s.object, s.uid, s.rv, n, *w)
	}
	return nil
}

// mayBeGone reports whether the object was or may have been deleted.
func (l *ledger) mayBeGone(o object, uid string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone[uid] || l.maybe[o] > 0
}

// since returns the confirmed writes of a resource from a number on.
func (l *ledger) since(n int, resource string) []write {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []write
	for _, w := range l.writes[n:] {
		if w.outcome == taken && w.object.resource == resource {
			out = append(out, w)
		}
	}
	return out
}
