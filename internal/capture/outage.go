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

// outageKey names a stream among all.
type outageKey struct {
	resource string
	streamKey
}

// outage sums up an absence of the API server that cuts many streams at about the same time.
// Its owner guards it.
type outage struct {
	begun time.Time // when the first stream was cut
	since time.Time // the last sign of life before that
	// silent: the connection was given up after a silence, so that the absence began before it was noticed.
	silent bool
	err    error
	told   bool
	calm   time.Time // when the last cut stream came back
	cut    map[outageKey]bool
	// down are the streams that are not back. False is for those that do not prove the absence:
	// they may outlast it.
	down     map[outageKey]bool
	relisted map[outageKey]bool
}

// Times that make one event of many: a cut shorter than grace is not worth a word on the way, and
// streams come back within calmAfter of each other.
const (
	grace     = 1500 * time.Millisecond
	calmAfter = time.Second
)

// hear takes a transition of a stream that was live before. It may stay in its state: Since is not
// when this happened.
func (o *outage) hear(now time.Time, key outageKey, st informer.Status) {
	if st.State == informer.Waiting && st.Synced && serverAway(st.Err) {
		proof := provesAbsence(key, st.Err)
		if o.down == nil && !proof {
			return
		}
		if o.down == nil {
			*o = outage{
				begun: now, since: now, silent: fellSilent(st.Err),
				cut: map[outageKey]bool{}, down: map[outageKey]bool{}, relisted: map[outageKey]bool{},
			}
		}
		if proof {
			o.err = st.Err // the first says how the stream broke, later ones why it does not come back
		} else {
			o.back(key, now)
		}
		if o.silent && !o.cut[key] {
			o.alive(st.LastCurrent)
		}
		o.cut[key], o.down[key] = true, proof
		return
	}
	if st.State != informer.ListingState && st.State != informer.Starting { // those may yet fail
		o.back(key, now)
		delete(o.down, key)
	}
}

// alive takes the last sign of life of a stream: the newest one of all is the server's.
func (o *outage) alive(at time.Time) {
	if !at.IsZero() && at.Before(o.begun) && (o.since.Equal(o.begun) || at.After(o.since)) {
		o.since = at
	}
}

// back notes when a stream ceased to prove the absence.
func (o *outage) back(key outageKey, at time.Time) {
	if o.down[key] {
		o.calm = at
	}
}

// away is true while a stream proves the absence.
func (o *outage) away() bool {
	for _, proof := range o.down {
		if proof {
			return true
		}
	}
	return false
}

// gap notes that a stream lost its place; true says that this absence accounts for it.
func (o *outage) gap(key outageKey) bool {
	if !o.cut[key] {
		return false
	}
	o.relisted[key] = true
	return true
}

// tick returns what there is to tell: that the server is away, then that it is back.
func (o *outage) tick(now time.Time) *Away {
	switch {
	case o.down == nil:
		return nil
	case o.away():
		if o.told || now.Sub(o.begun) < grace {
			return nil
		}
		o.told = true
		return &Away{Since: o.since, Silent: o.silent, Err: o.err, Streams: len(o.cut)}
	case now.Sub(o.calm) < calmAfter:
		return nil
	}
	a := &Away{Since: o.since, Until: o.calm, Silent: o.silent, Err: o.err, Streams: len(o.cut), Relisted: len(o.relisted)}
	*o = outage{}
	return a
}

// fellSilent tells a connection that was given up because nothing came any more from one that broke. HTTP/2's
// failed ping has no type of its own (golang.org/x/net/http2: errClientConnPingTimeout, "client connection lost").
func fellSilent(err error) bool {
	var broken net.Error
	return err != nil && (errors.As(err, &broken) && broken.Timeout() ||
		strings.Contains(err.Error(), "client connection lost") || strings.Contains(err.Error(), "fell silent"))
}

// serverAway tells a server that is not there, or shutting down or starting up, from one that
// answers and refuses.
func serverAway(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	return status.Status().Code >= 500
}

// provesAbsence tells an absence of the server from that of an extension: an aggregated API, or a
// conversion webhook, that is down lets the server answer 5xx for its kinds alone. Their groups have
// a dot in their names.
func provesAbsence(key outageKey, err error) bool {
	_, group, _ := strings.Cut(key.resource, ".")
	var broken net.Error
	return !strings.Contains(group, ".") || errors.As(err, &broken) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
