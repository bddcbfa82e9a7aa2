package render

import (
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// TestGapText: the text says what a gap means for a user, and promises nothing that may not follow.
func TestGapText(t *testing.T) {
	wd := change.Resource{Group: "example.com", Version: "v2", Resource: "widgets", Short: "wd", Kind: "Widget", Namespaced: true}
	for _, tc := range []struct {
		namespace string
		gap       *event.GapInfo
		want      string
	}{
		{"", &event.GapInfo{From: "3", To: "9", Reason: "not served as v1, now as v2"},
			"wd: served as v2 now, instead of v1; what changed in between, if anything, shows as net changes"},
		{"shop", &event.GapInfo{From: "3", Reason: "not served as v1beta1, now as v1, expired"},
			"wd (namespace shop): served as v1 now, instead of v1beta1; what changed in between, if anything, shows as net changes"},
		{"", &event.GapInfo{From: "3", To: "9", Reason: "API version changed"},
			"wd: versions between 3 and 9 were not seen: the API server serves another version of the kind; the net change, if any, follows"},
		{"", &event.GapInfo{From: "1948", To: "1948", Reason: "missed"}, // it was seen
			"wd: versions after 1948 may not have been seen: an audit found changes that the watch had not shown; the net change, if any, follows"},
		{"", &event.GapInfo{From: "1948", To: "1949", Reason: "missed"}, // so were both
			"wd: versions after 1948 may not have been seen: an audit found changes that the watch had not shown; the net change, if any, follows"},
		{"", &event.GapInfo{From: "3", Reason: "not served"}, "wd: versions after 3 were not seen: the kind was not served for a while; the net change, if any, follows"},
	} {
		var out strings.Builder
		text := New(Options{Out: &out})
		c := change.Change{Meta: change.Meta{Op: event.Gap, Kind: wd.ID(), Namespace: tc.namespace, Gap: tc.gap, At: time.Unix(0, 0)}, Names: wd.Names()}
		if err := text.Change(c.At, c); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); !strings.HasSuffix(got, "! "+tc.want) {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

// TestGapInterval: a gap of which the beginning is known has the interval in which versions were missed.
func TestGapInterval(t *testing.T) {
	var out strings.Builder
	text := New(Options{Out: &out, Location: time.UTC})
	end := time.Unix(90, 0).UTC()
	for _, since := range []time.Time{end.Add(-30 * time.Second), {}} {
		c := change.Change{Meta: change.Meta{Op: event.Gap, Gap: &event.GapInfo{From: "3", To: "9"}, Since: since, Time: end, At: end}}
		if err := text.Change(end, c); err != nil {
			t.Fatal(err)
		}
	}
	first, second, _ := strings.Cut(out.String(), "\n")
	if !strings.HasPrefix(first, "1970-01-01T00:01:00Z/1970-01-01T00:01:30Z ! ") || !strings.HasPrefix(second, "1970-01-01T00:01:30Z ! ") {
		t.Errorf("got\n%s", out.String())
	}
}
