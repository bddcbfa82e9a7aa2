package control

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAnnounce: only daemons that serve their sockets are found, and records of killed ones are removed.
func TestAnnounce(t *testing.T) {
	dir, rooms := filepath.Join(t.TempDir(), "running"), t.TempDir()
	if got := Running(t.Context(), dir); got != nil {
		t.Errorf("nothing was announced: %v", got)
	}
	withdraws := map[string]func() error{}
	var journals []string
	for _, name := range []string{"b", "a", "killed"} {
		j := filepath.Join(rooms, name+".db")
		l, err := Listen(j)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		withdraw, err := Announce(t.Context(), dir, j)
		if err != nil {
			t.Fatal(err)
		}
		if name == "killed" {
			_ = l.Close() // its socket stays
			continue
		}
		withdraws[j], journals = withdraw, append(journals, j)
	}
	slices.Sort(journals)
	if err := os.WriteFile(filepath.Join(dir, "else"), []byte("not a path"), 0o600); err != nil {
		t.Fatal(err)
	}
	for j, want := range map[string]bool{journals[0]: true, filepath.Join(rooms, "killed.db"): false, filepath.Join(rooms, "never.db"): false} {
		if Recording(t.Context(), j) != want {
			t.Errorf("%s is recorded into: %t, want %t", j, !want, want)
		}
	}
	if got := Running(t.Context(), dir); !slices.Equal(got, journals) {
		t.Errorf("%v, want %v", got, journals)
	}
	if _, err := Announce(t.Context(), dir, journals[0]); err != nil { // again, after a restart
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("the killed daemon's note was not removed: %v", left)
	}
	ended, end := context.WithCancel(t.Context())
	end() // so no daemon answers in time
	if _, err := Announce(ended, dir, journals[0]); err != nil {
		t.Fatal(err)
	}
	if got := Running(t.Context(), dir); !slices.Equal(got, journals) {
		t.Errorf("a daemon that is slow to answer lost its record: %v, want %v", got, journals)
	}
	for _, j := range journals {
		if err := withdraws[j](); err != nil {
			t.Error(err)
		}
		if err := withdraws[j](); err != nil { // already removed by another process
			t.Error(err)
		}
	}
	if got := Running(t.Context(), dir); got != nil {
		t.Errorf("withdrawn, but found: %v", got)
	}
	if _, err := Announce(t.Context(), filepath.Join(dir, "else", "x"), "/j"); err == nil {
		t.Error("a directory that cannot be made is not an error")
	}
}
