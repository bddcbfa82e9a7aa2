package capture

import (
	"errors"
	"io"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer"
)

// Streams are cut and come back within moments of each other, so an outage sums them up. A gap that belongs to it is
// marked (Change.Away), so that the text shows one line while events have every gap.

// heartbeat is how often the server is asked for a sign of life (informer.Options.Heartbeat).
const heartbeat = 2 * time.Second

// stalled reports a stall that the connection outlived; otherwise it is part of an outage.
func (w *Watcher) stalled(since, until time.Time, paused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outage.down != nil || since.Before(w.outage.ended) {
		return
	}
	w.stalls = append(w.stalls, Away{Since: since, Until: until, Silent: !paused, Paused: paused})
}

// outageKey identifies a stream among those of all kinds.
type outageKey struct {
	resource string
	streamKey
}

// outage combines the failures of many streams into one outage of the API server. Its owner guards it.
type outage struct {
	begun time.Time // when the first stream failed
	since time.Time // the last sign of life before that
	// silent is set if the connection was closed after a silence, so that the outage began before it was
	// noticed.
	silent   bool
	err      error
	reported bool
	calm     time.Time // when the last failed stream recovered
	ended    time.Time // when the outage before this one was over
	cut      map[outageKey]bool
	// down holds the streams that have not recovered. False marks streams that do not prove the outage; they
	// may outlast it.
	down     map[outageKey]bool
	relisted map[outageKey]bool
}

// An outage shorter than grace is not reported while it lasts. Streams recover within calmAfter of each other.
const (
	grace     = 1500 * time.Millisecond
	calmAfter = time.Second
)

// observe takes a state transition of a stream that was live before. The state may stay the same, so st.Since
// is not the time of the transition.
func (o *outage) observe(now time.Time, key outageKey, st informer.Status) {
	if st.State == informer.Waiting && st.Synced && serverAway(st.Err) {
		proof := provesAbsence(key, st.Err)
		if o.down == nil && !proof {
			return
		}
		if o.down == nil {
			*o = outage{
				ended: o.ended, begun: now, since: now, silent: fellSilent(st.Err),
				cut: map[outageKey]bool{}, down: map[outageKey]bool{}, relisted: map[outageKey]bool{},
			}
		}
		if proof {
			o.err = st.Err // the first error says how the stream broke, later ones why it does not recover
		} else {
			o.back(key, now)
		}
		if o.silent && !o.cut[key] {
			o.alive(st.LastCurrent)
		}
		o.cut[key], o.down[key] = true, proof
		return
	}
	if st.State != informer.Listing && st.State != informer.Starting { // these may still fail
		o.back(key, now)
		delete(o.down, key)
	}
}

// unsure reports whether the last sign of life may be that of a stream which has not been cut: the one that noticed the
// silence may have had nothing to say for long.
func (o *outage) unsure() bool { return o.silent && !o.reported }

// alive takes a stream's last sign of life; the newest of all streams is the server's.
func (o *outage) alive(at time.Time) {
	if !at.IsZero() && at.Before(o.begun) && (o.since.Equal(o.begun) || at.After(o.since)) {
		o.since = at
	}
}

// back records when a stream stopped proving the outage.
func (o *outage) back(key outageKey, at time.Time) {
	if o.down[key] {
		o.calm = at
	}
}

// away reports whether a stream proves the outage.
func (o *outage) away() bool {
	for _, proof := range o.down {
		if proof {
			return true
		}
	}
	return false
}

// gap records that a stream could not resume. It reports whether this outage caused it.
func (o *outage) gap(key outageKey) bool {
	if !o.cut[key] {
		return false
	}
	o.relisted[key] = true
	return true
}

// tick returns the next report, if one is due: that the server is away, then that it is back.
func (o *outage) tick(now time.Time) *Away {
	switch {
	case o.down == nil:
		return nil
	case o.away():
		if o.reported || now.Sub(o.begun) < grace {
			return nil
		}
		o.reported = true
		return &Away{Since: o.since, Silent: o.silent, Err: o.err, Streams: len(o.cut)}
	case now.Sub(o.calm) < calmAfter:
		return nil
	}
	a := &Away{Since: o.since, Until: o.calm, Silent: o.silent, Err: o.err, Streams: len(o.cut), Relisted: len(o.relisted)}
	*o = outage{ended: o.calm}
	return a
}

// fellSilent reports whether the connection was closed because of silence and did not break. HTTP/2's failed
// ping has no error type (golang.org/x/net/http2: errClientConnPingTimeout, "client connection lost").
func fellSilent(err error) bool {
	var broken net.Error
	return err != nil && (errors.As(err, &broken) && broken.Timeout() ||
		strings.Contains(err.Error(), "client connection lost") || strings.Contains(err.Error(), "fell silent"))
}

// serverAway reports whether the server is unreachable, starting or shutting down, as opposed to refusing the
// request.
func serverAway(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	return status.Status().Code >= 500
}

// provesAbsence reports whether the failure shows an outage of the server itself. An aggregated API or a
// conversion webhook that is down makes the server answer 5xx for its own kinds only; their groups have a dot
// in the name.
func provesAbsence(key outageKey, err error) bool {
	_, group, _ := strings.Cut(key.resource, ".")
	var broken net.Error
	return !strings.Contains(group, ".") || errors.As(err, &broken) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
