package binding

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

func TestAttributes(t *testing.T) {
	e := event.Event{Type: "dev.tattler.change.deleted.v1", Data: event.Data{Op: event.Deleted, Resource: event.Resource{Kind: "Node"}}}
	want := map[string]string{"content-type": ContentType, "ce-type": e.Type, "op": "deleted", "kind": "Node"}
	if d := cmp.Diff(want, Attributes(sink.Message{Event: &e})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestKey(t *testing.T) {
	const uid = "0a1b2c3d-0000-4000-8000-000000000000"
	for _, tc := range []struct{ why, key, want string }{
		{"a UID", uid, uid},
		{"the path of a collection", "/apis/apps/v1/deployments", "/apis/apps/v1/deployments"},
		{"as long as may be", strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{"longer", strings.Repeat("x", 65), ""},
		{"none", "", ""},
		{"with a blank", "a b", ""},
		{"beyond ASCII", "\u00fc", ""},
	} {
		got := Key(tc.key, 64)
		if tc.want != "" && got != tc.want || tc.want == "" && (len(got) != 64 || got == tc.key) {
			t.Errorf("%s: %q", tc.why, got)
		}
	}
	if Key("a b", 64) == Key("a c", 64) {
		t.Error("two keys became one")
	}
}
