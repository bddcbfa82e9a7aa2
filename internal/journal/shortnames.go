package journal

import (
	"context"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// shortNamesKey is the prefix of short names' keys in meta; the stored form of a group-resource follows.
const shortNamesKey = "short/"

// ShortNames returns the API servers' short names by group-resource, those of all clusters together.
func (r *Reader) ShortNames(ctx context.Context) (names map[string][]string, err error) {
	err = r.do(ctx, func() (err error) {
		names, err = r.db.allShortNames()
		return err
	})
	return names, err
}

// ShortNames is as of a Reader.
func (j *Journal) ShortNames(ctx context.Context) (names map[string][]string, err error) {
	err = j.do(ctx, "read", func() (err error) {
		names, err = j.db.allShortNames()
		return err
	})
	return names, err
}

func (db *db) allShortNames() (map[string][]string, error) {
	names := map[string][]string{}
	err := db.shortNames(func(stored, text string) {
		resource, _ := unqualify(stored)
		for _, name := range strings.Fields(text) {
			if !slices.Contains(names[resource], name) {
				names[resource] = append(names[resource], name)
			}
		}
	})
	return names, err
}

func (db *db) shortNames(each func(resource, text string)) error {
	// "0" is the byte after "/".
	return db.query("SELECT key, value FROM meta WHERE key > 'short/' AND key < 'short0'", nil, func(s *sqlite3.Stmt) error {
		each(strings.TrimPrefix(s.ColumnText(0), shortNamesKey), s.ColumnText(1))
		return nil
	})
}

// setShortNames stores the short names of a group-resource if they changed.
func (n *names) setShortNames(resource string, short []string) error {
	if n.short == nil {
		known := map[string]string{}
		if err := n.db.shortNames(func(resource, text string) { known[resource] = text }); err != nil {
			return err
		}
		n.short = known
	}
	text := strings.Join(short, " ")
	if n.short[resource] == text {
		return nil
	}
	n.short[resource] = text
	if text == "" {
		return n.db.exec("DELETE FROM meta WHERE key = ?", shortNamesKey+resource)
	}
	return n.db.exec("INSERT OR REPLACE INTO meta VALUES (?, ?)", shortNamesKey+resource, text)
}
