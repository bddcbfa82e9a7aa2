package torture

import "testing"

// TestVanished: what a list does not have was deleted, unless it is newer than the list.
func TestVanished(t *testing.T) {
	type is struct {
		after, version string // of the deletion; empty: there is none
	}
	for _, tc := range []struct {
		why    string
		sights []sighting
		want   is
	}{
		{"it was there before", []sighting{{version: "3", what: added}}, is{"4", "8"}},
		{"a writer heard of it in the gap", []sighting{{version: "7", what: present, told: true}}, is{"4", "8"}},
		{"a writer made it after the list", []sighting{{version: "9", what: present, told: true}}, is{}},
		{"its deletion was seen", []sighting{{version: "2", what: added}, {version: "3", what: deleted}}, is{}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			id := identity{"gadgets", "u"}
			w := &witness{
				past: past{objects: map[identity]*timeline{id: {kind: "gadgets", uid: "u", sights: tc.sights}}},
				gaps: []relist{{"gadgets", span{"4", "8"}, nil}, {"others", span{"8", "13"}, nil}},
			}
			w.vanished()
			var got is
			for _, s := range w.objects[id].sights {
				if s.vague {
					got = is{s.after, s.version}
				}
			}
			if got != tc.want {
				t.Errorf("it was deleted in %v, want %v", got, tc.want)
			}
		})
	}
}
