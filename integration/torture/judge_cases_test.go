package torture

import (
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tattler-dev/tattler/event"
)

// shown is a ConfigMap in the server's form, created after 100 seconds.
func shown(version, value string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":%q,"creationTimestamp":"1970-01-01T00:01:40Z"},"data":{"k":%q}}`, version, value)
}

// story is a history of one object: created at 3, updated at 5 and 7, deleted at 9; the journal began at 2.
func story() (*past, []row) {
	p := &past{
		objects: map[identity]*timeline{{"configmaps", "u"}: {kind: "configmaps", namespace: "n", name: "a", uid: "u", sights: []sighting{
			{version: "3", what: added, json: shown("3", "one"), known: time.Unix(101, 0)}, {version: "5", what: modified, json: shown("5", "two")},
			{version: "7", what: modified, json: shown("7", "three")}, {version: "9", what: deleted},
		}}},
		blind: map[string][]span{}, start: map[string]string{"configmaps": "2"},
	}
	rows := []row{
		recordedRow(1, event.Created, "3", nil, shown("3", "one")), recordedRow(2, event.Updated, "5", shown("3", "one"), shown("5", "two")),
		recordedRow(3, event.Updated, "7", shown("5", "two"), shown("7", "three")), recordedRow(4, event.Deleted, "9", shown("7", "three"), nil),
	}
	return p, rows
}

func recordedRow(seq int64, op event.Op, version string, before, after []byte) row {
	return row{
		seq: seq, id: fmt.Sprintf("%s-%s", op, version), op: op, kind: "configmaps", namespace: "n", name: "a", uid: "u",
		version: version, before: before, after: after,
	}
}

func gap(seq int64, from, to, reason string) row {
	return row{seq: seq, id: "gap" + from + to, op: event.Gap, kind: "configmaps", gap: &event.GapInfo{From: from, To: to, Reason: reason}}
}

func derived(r row) row {
	r.derived = true
	return r
}

// inList is a creation that a list showed, which says that it happened after a time in seconds.
func inList(r row, since int64) row {
	r.derived, r.since, r.time, r.at = true, time.Unix(since, 0), time.Unix(100, 0), time.Unix(102, 0)
	return r
}

// TestJudge: the judge must find each planted fault.
func TestJudge(t *testing.T) {
	server := map[identity][]byte{}
	for _, tc := range []struct {
		why  string
		make func(p *past, rows []row) []row
		want []string // the expected faults
	}{
		{"all is well", func(_ *past, rows []row) []row { return rows }, nil},
		{"a missing version", func(_ *past, rows []row) []row {
			return []row{rows[0], recordedRow(2, event.Updated, "7", shown("3", "one"), shown("7", "three")), rows[3]}
		}, []string{lost}},
		{"a missing last version", func(_ *past, rows []row) []row { return rows[:3] }, []string{diverged, lost}},
		{"an empty journal", func(*past, []row) []row { return nil }, []string{lost}},
		{"versions before the journal are not required", func(p *past, rows []row) []row {
			p.start["configmaps"] = "5"
			first := recordedRow(2, event.Snapshot, "5", nil, shown("5", "two"))
			return []row{first, rows[2], rows[3]}
		}, nil},
		{"but later versions of such an object are", func(p *past, rows []row) []row {
			p.start["configmaps"] = "5"
			return []row{rows[0], recordedRow(3, event.Updated, "7", shown("3", "one"), shown("7", "three")), rows[3]}
		}, []string{lost}},
		{"in a gap, with the right net change", func(_ *past, rows []row) []row {
			return []row{rows[0], gap(2, "3", "7", "expired"), derived(recordedRow(3, event.Updated, "7", shown("3", "one"), shown("7", "three"))), rows[3]}
		}, nil},
		{"the gap ends too early", func(_ *past, rows []row) []row {
			return []row{rows[0], gap(2, "3", "4", "expired"), derived(recordedRow(3, event.Updated, "7", shown("3", "one"), shown("7", "three"))), rows[3]}
		}, []string{lost}},
		{"the gap is another namespace's", func(_ *past, rows []row) []row {
			g := gap(2, "3", "7", "expired")
			g.namespace = "m"
			return []row{rows[0], g, derived(recordedRow(3, event.Updated, "7", shown("3", "one"), shown("7", "three"))), rows[3]}
		}, []string{groundless, lost}},
		{"the gap comes too late", func(_ *past, rows []row) []row {
			return []row{rows[0], recordedRow(2, event.Updated, "7", shown("3", "one"), shown("7", "three")), gap(3, "3", "7", "expired"), rows[3]}
		}, []string{lost, needless}},
		{"a gap whose net change differs from the server", func(_ *past, rows []row) []row {
			return []row{rows[0], gap(2, "3", "7", "expired"), derived(recordedRow(3, event.Updated, "7", shown("3", "one"), shown("7", "two"))),
				recordedRow(4, event.Deleted, "9", shown("7", "two"), nil)}
		}, []string{falsified}},
		{"a gap whose net change does not begin with the recorded state", func(_ *past, rows []row) []row {
			return []row{rows[0], gap(2, "3", "7", "expired"), derived(recordedRow(3, event.Updated, "7", shown("5", "two"), shown("7", "three"))), rows[3]}
		}, []string{broken}},
		{"a gap without its net change", func(_ *past, rows []row) []row { return []row{rows[0], rows[1], gap(3, "5", "9", "expired")} }, []string{diverged}},
		{"a missed deletion", func(_ *past, rows []row) []row {
			return []row{rows[0], rows[1], gap(3, "5", "9", "expired"), derived(recordedRow(4, event.Deleted, "5", shown("5", "two"), nil))}
		}, nil},
		{"a gap without a reason", func(_ *past, rows []row) []row {
			return []row{rows[0], gap(2, "3", "7", ""), derived(recordedRow(3, event.Updated, "7", shown("3", "one"), shown("7", "three"))), rows[3]}
		}, []string{groundless, groundless, lost}},
		{"a net change without a gap", func(_ *past, rows []row) []row {
			rows[1].derived = true
			return rows
		}, []string{groundless}},
		{"a creation that the first list showed", func(p *past, rows []row) []row {
			p.start["configmaps"] = "3"
			return append([]row{inList(rows[0], 100)}, rows[1:]...)
		}, nil},
		{"its interval does not begin with the creation", func(p *past, rows []row) []row {
			p.start["configmaps"] = "3"
			return append([]row{inList(rows[0], 99)}, rows[1:]...)
		}, []string{falsified}},
		{"a creation between a first list that was interrupted and the next", func(p *past, rows []row) []row {
			p.start["configmaps"] = "3"
			rows[0] = inList(rows[0], 99)
			for i := range rows {
				rows[i].seq++
			}
			return append([]row{gap(1, "", "3", "a list was interrupted")}, rows...)
		}, nil},
		{"a creation that a later list showed, without a gap", func(_ *past, rows []row) []row {
			return append([]row{inList(rows[0], 100)}, rows[1:]...)
		}, []string{groundless}},
		{"an unknown version", func(_ *past, rows []row) []row {
			return []row{rows[0], rows[1], rows[2], recordedRow(4, event.Updated, "8", shown("7", "three"), shown("8", "four")), recordedRow(5, event.Deleted, "9", shown("8", "four"), nil)}
		}, []string{invented}},
		{"an unknown object", func(_ *past, rows []row) []row {
			other := recordedRow(5, event.Created, "8", nil, shown("8", "four"))
			other.uid = "v"
			return append(rows, other)
		}, []string{diverged, invented}},
		{"the watcher was blind", func(p *past, rows []row) []row {
			p.blind["configmaps"] = []span{{"7", "8"}}
			return []row{rows[0], rows[1], rows[2], recordedRow(4, event.Updated, "8", shown("7", "three"), shown("8", "four")), recordedRow(5, event.Deleted, "9", shown("8", "four"), nil)}
		}, nil},
		{"a duplicate change", func(_ *past, rows []row) []row {
			again := recordedRow(4, event.Updated, "7", shown("7", "three"), shown("7", "three"))
			again.id = "another"
			return []row{rows[0], rows[1], rows[2], again, recordedRow(5, event.Deleted, "9", shown("7", "three"), nil)}
		}, []string{twice}},
		{"a duplicate id", func(_ *past, rows []row) []row {
			rows[2].id = rows[1].id
			return rows
		}, []string{twice}},
		{"versions out of order", func(_ *past, rows []row) []row {
			return []row{rows[0], recordedRow(2, event.Updated, "7", shown("3", "one"), shown("7", "three")),
				recordedRow(3, event.Updated, "5", shown("7", "three"), shown("5", "two")), recordedRow(4, event.Deleted, "9", shown("5", "two"), nil)}
		}, []string{lost, twice}},
		{"rows out of order", func(_ *past, rows []row) []row {
			rows[2].seq = 1
			return rows
		}, []string{disorder}},
		{"a change to another state", func(_ *past, rows []row) []row {
			rows[1].after, rows[2].before = shown("5", "lie"), shown("5", "lie")
			return rows
		}, []string{falsified}},
		{"a deletion that did not happen", func(p *past, rows []row) []row {
			sights := &p.objects[identity{"configmaps", "u"}].sights
			*sights = (*sights)[:3]
			return rows
		}, []string{invented}},
		{"something is hidden unnecessarily", func(_ *past, rows []row) []row {
			rows[2].after, rows[3].before = shown("7", "hidden #0123456789abcdef"), shown("7", "hidden #0123456789abcdef")
			return rows
		}, []string{falsified, falsified}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			p, rows := story()
			rows = tc.make(p, rows)
			j := newJudge(p, justify(rows), "n")
			for _, r := range rows {
				j.row(r)
			}
			j.end(server)
			same(t, j, tc.want)
		})
	}
}

func same(t *testing.T, j *judge, want []string) {
	t.Helper()
	var got []string
	for _, f := range j.faults {
		got = append(got, f.what)
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("found %v, want %v\n%s", got, want, j.verdict())
	}
}

// TestJudgeReplay: the replayed journal is compared with the server.
func TestJudgeReplay(t *testing.T) {
	id := identity{"configmaps", "u"}
	for _, tc := range []struct {
		why    string
		server map[identity][]byte
		want   []string
	}{
		{"the same", map[identity][]byte{id: shown("7", "three")}, nil},
		{"the server has nothing", nil, []string{diverged}},
		{"the server has something else", map[identity][]byte{id: shown("7", "four")}, []string{diverged}},
		{"the server has more", map[identity][]byte{id: shown("7", "three"), {"configmaps", "v"}: shown("8", "x")}, []string{diverged}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			p, rows := story()
			sights := &p.objects[id].sights
			*sights = (*sights)[:3]
			j := newJudge(p, nil, "n")
			for _, r := range rows[:3] {
				j.row(r)
			}
			j.end(tc.server)
			same(t, j, tc.want)
		})
	}
}

// TestJudgeHidden: every value of a Secret must be a marker, and equal markers mean equal values.
func TestJudgeHidden(t *testing.T) {
	secret := func(version, value string) []byte {
		return fmt.Appendf(nil, `{"kind":"Secret","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":%q},"data":{"k":%q}}`, version, value)
	}
	const one, two = "hidden #0123456789abcdef", "hidden #fedcba9876543210"
	for _, tc := range []struct {
		why           string
		first, second string // the journal's texts for eA==, eA==
		want          []string
	}{
		{"hidden", one, one, nil},
		{"not hidden", "eA==", "eA==", []string{falsified}},
		{"another marker for the same value", one, two, []string{falsified}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			id := identity{"secrets", "u"}
			j := newJudge(&past{objects: map[identity]*timeline{id: {kind: "secrets", namespace: "n", name: "a", uid: "u", sights: []sighting{
				{version: "3", what: added, json: secret("3", "eA==")}, {version: "5", what: modified, json: secret("5", "eA==")},
			}}}}, nil, "n")
			for _, r := range []row{
				recordedRow(1, event.Created, "3", nil, secret("3", tc.first)), recordedRow(2, event.Updated, "5", secret("3", tc.first), secret("5", tc.second)),
			} {
				r.kind = "secrets"
				j.row(r)
			}
			same(t, j, tc.want)
		})
	}
}

// TestJudgeSink: a sink's messages are compared with the journal.
func TestJudgeSink(t *testing.T) {
	body := func(seq int64, op event.Op, version string) receipt {
		r := recordedRow(seq, op, version, nil, nil)
		return receipt{fmt.Appendf(nil, `{"id":%q,"data":{"op":%q,"resource":{"uid":"u","resourceVersion":%q}}}`, r.id, op, version)}
	}
	all := []receipt{body(1, event.Created, "3"), body(2, event.Updated, "5"), body(3, event.Updated, "7"), body(4, event.Deleted, "9")}
	for _, tc := range []struct {
		why  string
		got  []receipt
		want []string
	}{
		{"everything once", all, nil},
		{"everything twice", append(slices.Clone(all), all...), nil},
		{"duplicates after a crash", []receipt{all[0], all[1], all[0], all[1], all[2], all[3]}, nil},
		{"one is missing", []receipt{all[0], all[1], all[3]}, []string{missed}},
		{"two in the wrong order", []receipt{all[0], all[2], all[1], all[3]}, []string{disorder}},
		{"a torn line", append(slices.Clone(all), receipt{all[0].body[:30]}), []string{torn}},
		{"other bytes under the same id", append(slices.Clone(all), receipt{append([]byte(" "), all[0].body...)}), []string{torn}},
		{"an event that is not in the journal", append(slices.Clone(all), body(5, event.Updated, "11")), []string{invented}},
		{"another version under an id", append(slices.Clone(all[:3]), receipt{[]byte(`{"id":"deleted-9","data":{"op":"deleted","resource":{"uid":"u","resourceVersion":"8"}}}`)}), []string{falsified}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			p, rows := story()
			j := newJudge(p, nil, "n")
			for _, r := range rows {
				j.row(r)
			}
			j.sink("sink", func(*row) bool { return true }, tc.got)
			same(t, j, tc.want)
		})
	}
	t.Run("an event that the sink does not want", func(t *testing.T) {
		p, rows := story()
		j := newJudge(p, nil, "n")
		for _, r := range rows {
			j.row(r)
		}
		j.sink("sink", func(r *row) bool { return r.op == event.Deleted }, all[2:])
		same(t, j, []string{invented})
	})
}

// TestJudgeTraces: spans are compared with the journal.
func TestJudgeTraces(t *testing.T) {
	id := func(seq int64) string {
		return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(fmt.Appendf(nil, "%016d", seq)))
	}
	span := func(seq int64, name string, attributes ...string) *tracepb.Span {
		trace := fmt.Appendf(nil, "%016d", seq)
		s := &tracepb.Span{Name: name, TraceId: trace, SpanId: trace[:8], StartTimeUnixNano: 1, EndTimeUnixNano: 2}
		if name == "deliver" {
			s.SpanId, s.ParentSpanId = trace[8:], trace[:8]
		}
		for i := 0; i < len(attributes); i += 2 {
			s.Attributes = append(s.Attributes, &commonpb.KeyValue{Key: attributes[i], Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: attributes[i+1]}}})
		}
		return s
	}
	change := func(seq int64, op string) *tracepb.Span {
		return span(seq, "change", "tattler.id", id(seq), "tattler.op", op, "k8s.namespace.name", "n", "tattler.name", "a")
	}
	deliver := func(seq int64, sink string) *tracepb.Span {
		return span(seq, "deliver", "tattler.id", id(seq), "tattler.sink", sink)
	}
	backwards, child, root := change(1, "created"), change(1, "created"), deliver(1, "all")
	backwards.EndTimeUnixNano, child.SpanId, root.ParentSpanId = 0, []byte("another1"), nil
	later := change(1, "created")
	later.EndTimeUnixNano++
	for _, tc := range []struct {
		why  string
		span *tracepb.Span
		want []string
	}{
		{"a change", change(2, "updated"), nil},
		{"a change that is sent again", change(1, "created"), nil},
		{"a change that was journaled again", later, []string{twice}},
		{"a delivery", deliver(4, "some"), nil},
		{"a change that is not in the journal", change(5, "updated"), []string{invented}},
		{"a delivery of such a change", deliver(5, "all"), []string{invented}},
		{"a delivery to a sink that does not want it", deliver(1, "some"), []string{invented}},
		{"a delivery to an unknown sink", deliver(1, "other"), []string{invented}},
		{"another operation", change(1, "updated"), []string{falsified}},
		{"another id", span(1, "change", "tattler.id", id(2)), []string{falsified}},
		{"an end before the start", backwards, []string{falsified}},
		{"a change that is not the root", child, []string{falsified}},
		{"a delivery without a parent", root, []string{falsified}},
		{"a span of another name", span(1, "journal", "tattler.id", id(1)), []string{invented}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			p, rows := story()
			j := newJudge(p, nil, "n")
			for _, r := range rows {
				r.id = id(r.seq)
				j.row(r)
			}
			sinks := map[string]func(*row) bool{
				"all": func(*row) bool { return true }, "some": func(r *row) bool { return r.op == event.Deleted },
			}
			changes, deliveries := j.traces(sinks, []*tracepb.Span{change(1, "created"), tc.span})
			if same(t, j, tc.want); (changes+deliveries == 2) != (tc.want == nil) {
				t.Errorf("counted %d changes and %d deliveries", changes, deliveries)
			}
		})
	}
}
