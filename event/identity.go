package event

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"net/url"
	"strconv"
	"time"
)

// Two recorders of one cluster give one change the same id, whatever else each of them has seen. So an id has nothing
// that only one of them knows:
//
//   - The state of an object in a version has one id, whether a recorder found it in its first list (snapshot), saw it
//     begin (created, entered) or saw it change (updated).
//   - A deletion has one id, whether its version is known or only the last one before it: a UID is deleted once.
//   - Leaving the selection has the version at which it was noticed: an object may leave several times.
//   - The epoch is part of an id, because after a restored backup the same version of the same object is another change.
//     Recorders agree on it as far as each can prove the replacement (see package feed). The first epoch is left out.
//   - Form distinguishes what would otherwise be the same.

// New returns the event of a change in the named cluster at the given time. It is determined by its arguments, the id by all
// but the time. The event shares d's slices and maps.
func New(cluster string, at time.Time, d Data) Event {
	if d.Epoch == 1 {
		d.Epoch = 0
	}
	if d.Severity == "" {
		d.Severity = Normal
	}
	return Event{
		SpecVersion:     "1.0",
		Type:            Type(d.Op),
		Source:          "/clusters/" + url.PathEscape(cluster),
		ID:              id(cluster, d),
		Subject:         Subject(d.Resource),
		Time:            at,
		PartitionKey:    d.Resource.UID,
		DataContentType: "application/json",
		Data:            d,
	}
}

func id(cluster string, d Data) string {
	r := d.Resource
	if d.Op == Absent {
		var since time.Time
		if d.Observed.After != nil {
			since = *d.Observed.After
		}
		return AbsenceID(cluster, since)
	}
	if d.Op != Gap {
		uid := r.UID
		if uid == "" { // client-go's fakes leave it empty: the name is the next best identity
			uid = r.Namespace + "/" + r.Name
		}
		version := r.ResourceVersion
		if d.Op == Deleted && r.UID != "" {
			version = ""
		}
		return ID(cluster, groupResource(r), uid, version, d.Op, d.Epoch, d.Form)
	}
	var gap GapInfo
	if d.Gap != nil {
		gap = *d.Gap
	}
	if gap.To == "" && d.Observed.After != nil { // otherwise all gaps that begin with one version would have one id
		gap.To = d.Observed.After.UTC().Format(stampFormat)
	}
	return GapID(cluster, groupResource(r)+"/"+r.Namespace, gap.From, gap.To, d.Epoch)
}

// Type returns the CloudEvents type of an operation: dev.tattler.change.updated.v1.
func Type(op Op) string { return "dev.tattler.change." + string(op) + ".v1" }

// Subject returns the path of the object on the API server; without a name, the path of its collection. Names need no
// escaping: the server only admits path segments.
func Subject(r Resource) string {
	path := "/apis/" + r.Group
	if r.Group == "" {
		path = "/api"
	}
	path += "/" + r.Version
	if r.Namespace != "" {
		path += "/namespaces/" + r.Namespace
	}
	path += "/" + r.Resource
	if r.Name != "" {
		path += "/" + r.Name
	}
	return path
}

// ID returns the id of a change: 26 characters, always the same for the same arguments, and the same for a snapshot, a
// creation, an update and an entry. The groupResource is deployments.apps, or pods for the core group; version is the
// object's resource version after the change. It is empty for a deletion, unless the object has no UID: then namespace/name
// takes the place of the UID. The epoch is Data.Epoch; 0 and 1 mean the first. The form is Data.Form.
func ID(cluster, groupResource, uid, version string, op Op, epoch int64, form uint64) string {
	what := string(op)
	switch op {
	case Snapshot, Created, Updated, Entered:
		what = "state"
	}
	return hash(append([]string{what, cluster, groupResource, uid, version, strconv.FormatUint(form, 16)}, later(epoch)...)...)
}

// GapID returns the id of a gap between two resource versions of a stream. The stream is the
// groupResource, a slash and the stream's namespace, which is empty for the whole cluster; the epoch is as for
// ID. If the version at its end is unknown, to is the moment after which versions were missed, as in observed.after.
func GapID(cluster, stream, from, to string, epoch int64) string {
	return hash(append([]string{"gap", cluster, stream, from, to}, later(epoch)...)...)
}

// AbsenceID returns the id of an absence that began at a moment, in milliseconds.
func AbsenceID(cluster string, since time.Time) string {
	return hash("absence", cluster, since.UTC().Format(stampFormat))
}

// later is the part of an id for epochs after the first.
func later(epoch int64) []string {
	if epoch <= 1 {
		return nil
	}
	return []string{strconv.FormatInt(epoch, 10)}
}

func groupResource(r Resource) string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}

var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// hash joins parts with their lengths, so that different lists of parts give different bytes. With 128 bits, the chance of a
// collision among 2^40 events is 2^-49.
func hash(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum := sha256.Sum256(b)
	return lower.EncodeToString(sum[:16])
}
