package torture

import "testing"

// TestVanished: objects missing in a list were deleted, unless they are newer than the list.
func TestVanished(t *testing.T) {
	type is struct {
		after, version string // of the deletion; empty: none
	}
	for _, tc := range []struct {
		why    string
		sights []sighting
		want   is
	}{
		{"it existed before", []sighting{{version: "3", what: added}}, is{"4", "8"}},
		{"a write in the gap confirmed it", []sighting{{version: "7", what: present, written: true}}, is{"4", "8"}},
		{"a write created it after the list", []sighting{{version: "9", what: present, written: true}}, is{}},
		{"its deletion was seen", []sighting{{version: "2", what: added}, {version: "3", what: deleted}}, is{}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			id := identity{"gadgets", "u"}
			w := &watcher{
				past: past{objects: map[identity]*timeline{id: {kind: "gadgets", uid: "u", sights: tc.sights}}},
				gaps: []relist{{kind: "gadgets", missed: span{"4", "8"}}, {kind: "others", missed: span{"8", "13"}}},
			}
			w.vanished()
			var got is
			for _, s := range w.objects[id].sights {
				if s.vague {
					got = is{s.after, s.version}
				}
			}
			if got != tc.want {
				t.Errorf("deleted in %v, want %v", got, tc.want)
			}
		})
	}
}
