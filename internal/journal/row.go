package journal

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/delta"
)

// ops are the operations by their numbers in the file.
var ops = [...]event.Op{1: event.Snapshot, event.Created, event.Updated, event.Deleted, event.Entered, event.Left, event.Gap, event.Converted, event.Absent}

func opOf(n int) event.Op {
	if n <= 0 || n >= len(ops) {
		return ""
	}
	return ops[n]
}

func opNumber(op event.Op) int {
	for n, o := range ops {
		if o == op && n > 0 {
			return n
		}
	}
	return 0
}

// severities are the severities by their numbers in the file; from severe on, changes are in the index changes_severe.
var severities = [...]event.Severity{event.Normal, event.Recovery, severe: event.Warning, event.Failure}

const severe = 2

// severityOf returns the number of a change's severity. One that was not judged is normal, but a gap is always a warning, so
// that the index has it: it matches any severity.
func severityOf(m *Meta) int {
	if m.Op == event.Gap {
		return severe
	}
	return max(0, slices.Index(severities[:], m.Severity))
}

func (r *Row) check() error {
	switch {
	case r.Rewritten && (r.Op != "" || len(r.After) == 0 || len(r.After) > delta.MaxSize):
		return fmt.Errorf("rewritten state of %s/%s with operation %q and %d bytes", r.Namespace, r.Name, r.Op, len(r.After))
	case r.Rewritten:
		return nil
	case opNumber(r.Op) == 0:
		return fmt.Errorf("operation %q", r.Op)
	case len(r.Before) > delta.MaxSize || len(r.After) > delta.MaxSize:
		return fmt.Errorf("%s of %s/%s with more than %d bytes", r.Op, r.Namespace, r.Name, delta.MaxSize)
	case r.Severity != "" && !slices.Contains(severities[:], r.Severity):
		return fmt.Errorf("severity %q", r.Severity)
	case r.Time.IsZero() || r.At.IsZero():
		return fmt.Errorf("%s of %s/%s without a time", r.Op, r.Namespace, r.Name)
	case r.Op == event.Gap && (r.Gap == nil || len(r.Before)+len(r.After) > 0):
		return errors.New("a gap must say what was missed and has no object")
	case r.Op == event.Absent && (r.Absence == nil || r.Since.IsZero() || len(r.Before)+len(r.After) > 0):
		return errors.New("an absence must have a start and a cause, and has no object")
	case r.Op != event.Gap && r.Gap != nil:
		return fmt.Errorf("a gap in %s of %s/%s", r.Op, r.Namespace, r.Name)
	case r.Op == event.Converted && r.Form == 0:
		return fmt.Errorf("%s of %s/%s without a form", r.Op, r.Namespace, r.Name)
	case leaves(r.Op) != (len(r.After) > 0):
		return fmt.Errorf("%s of %s/%s with %d bytes after it", r.Op, r.Namespace, r.Name, len(r.After))
	}
	return nil
}

// compareVersions orders resource versions by the API server's contract: by length, then bytes. It returns false
// unless both are numbers.
func compareVersions(a, b string) (int, bool) {
	if !number(a) || !number(b) {
		return 0, false
	}
	if len(a) != len(b) {
		return len(a) - len(b), true
	}
	return strings.Compare(a, b), true
}

// number reports whether a version is a decimal number without leading zeros.
func number(v string) bool {
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return false
		}
	}
	return v != "" && (v[0] != '0' || v == "0")
}

// versionValue is the column value of a version: an integer where it round-trips, which is shorter.
func versionValue(v string) any {
	if number(v) && len(v) < 19 {
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil {
			return n
		}
	}
	return v
}

// epochValue is the column value of an epoch: NULL for the first.
func epochValue(epoch int64) any {
	if epoch <= 1 {
		return nil
	}
	return epoch
}

// sumValue is the column value of a sum or a form: NULL if unknown.
func sumValue(sum uint64) any {
	if sum == 0 {
		return nil
	}
	return int64(sum) //nolint:gosec // the same bits
}

// sinceValue is the column value of the moment after which something happened: NULL if unknown.
func sinceValue(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// uidKey identifies an object among those of its resource.
func uidKey(m *Meta) string {
	if m.UID != "" {
		return m.UID
	}
	return "/" + m.Namespace + "/" + m.Name
}

// uid undoes uidKey.
func uid(key string) string {
	if strings.HasPrefix(key, "/") {
		return ""
	}
	return key
}

func ownerText(o *event.Owner) string {
	if o == nil {
		return ""
	}
	return o.Kind + "\n" + o.Name + "\n" + o.UID
}

func ownerOf(text string) *event.Owner {
	f := strings.Split(text, "\n")
	if len(f) != 3 {
		return nil
	}
	return &event.Owner{Kind: f[0], Name: f[1], UID: f[2]}
}

// timesOf returns the columns that hold a change's times. A negative since says that the server sent the change late; see
// record.after.
func timesOf(m *Meta) record {
	at := m.At.UnixMilli()
	c := record{op: opNumber(m.Op), time: m.Time.UnixMilli(), bounded: !m.Since.IsZero()}
	c.lag = at - c.time
	if c.bounded {
		if c.since = max(0, at-m.Since.UnixMilli()); !m.Net && m.Op.HasObject() {
			c.since = -c.since - 1
		}
	}
	return c
}

// setTimes sets the times of a change that columns hold.
func (r *record) setTimes(m *Meta) {
	m.Time, m.At = time.UnixMilli(r.time).UTC(), time.UnixMilli(r.time+r.lag).UTC()
	m.Since, m.Net = time.Time{}, false
	if from, net, ok := r.after(); ok {
		m.Since, m.Net = time.UnixMilli(from).UTC(), net
	}
}

// Stored returns a change as a Reader returns it once it is in the journal, which keeps milliseconds.
func Stored(m Meta) Meta {
	c := timesOf(&m)
	c.setTimes(&m)
	if m.Epoch <= 1 {
		m.Epoch = 0
	}
	m.Severity = severities[severityOf(&m)]
	return m
}
