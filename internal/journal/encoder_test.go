package journal

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// TestEncoder: an Encoder makes what Append stores.
func TestEncoder(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	first, second := pod(event.Created, 1), pod(event.Updated, 2)
	second.Before = first.After
	if _, err := j.Append(t.Context(), []Batch{{Rows: []Row{first, second}}}); err != nil {
		t.Fatal(err)
	}
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	state, difference := e.Update(second.Before, second.After)
	for query, want := range map[string][]byte{
		"SELECT content FROM live":                  state,
		"SELECT before FROM contents WHERE seq = 2": difference,
	} {
		var got []byte
		err := j.db.query(query, nil, func(s *sqlite3.Stmt) error {
			got = bytes.Clone(s.ColumnRawBlob(0))
			return nil
		})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, not %x: %v", query, got, want, err)
		}
	}
}
