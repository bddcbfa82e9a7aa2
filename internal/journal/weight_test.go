package journal

import (
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/event"
)

// TestStates compares the estimated size of the states with the growth of the file.
func TestStates(t *testing.T) {
	ctx := t.Context()
	for name, fill := range map[string]func(*Journal){
		"nodes":  func(j *Journal) { f := &fleet{nodes: 200}; _, err := j.Append(ctx, f.batch(200)); must(t, err) },
		"noise":  func(j *Journal) { grown(t, j, 1000, 300, 4000) },
		"small":  func(j *Journal) { grown(t, j, 1000, 10, 600) },
		"large":  func(j *Journal) { grown(t, j, 40, 5000, 90_000) },
		"none":   func(*Journal) {},
		"a few":  func(j *Journal) { grown(t, j, 3, 10, 20) },
		"a hole": func(j *Journal) { grown(t, j, 500, 300, 4000); must(t, j.Forget(ctx, pods)) },
	} {
		path := filepath.Join(t.TempDir(), "journal.db")
		j := open(t, path)
		empty, _, err := j.used(ctx)
		must(t, err)
		fill(j)
		full, _, err := j.used(ctx)
		must(t, err)
		r, err := OpenReader(ctx, path)
		must(t, err)
		got, err := r.States(ctx)
		must(t, err, r.Close())
		switch grew := full - empty; name {
		case "none", "a hole":
			if got != 0 {
				t.Errorf("%s: %d bytes", name, got)
			}
		default:
			t.Logf("%s: %d bytes, measured %d", name, got, grew)
			if got < grew*2/3-8192 || got > grew*4/3+8192 {
				t.Errorf("%s: %d bytes, and the file grew by %d", name, got, grew)
			}
		}
	}
}

// grown adds objects with contents of random sizes.
func grown(t *testing.T, j *Journal, objects, least, most int) {
	t.Helper()
	h := newHistory(5)
	var rows []Row
	for i := range objects {
		r := pod(event.Snapshot, i+1)
		r.UID = uidOf(i)
		r.Name = "web-" + r.UID[:8]
		r.Before, r.After = nil, noise(h.Rand, least+h.IntN(most-least))
		rows = append(rows, r)
	}
	add(t, j, rows...)
}
