package journal

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// idsPage is how many candidates for an id are read in one read transaction.
const idsPage = 64

// ErrShortID means that very many ids begin with a prefix.
var ErrShortID = errors.New("too many ids begin with this")

// WithID yields the changes of a scope whose ids begin with a prefix, the newest block of changes first. It looks at most at so
// many changes, then it ends with ErrShortID.
func (r *Reader) WithID(ctx context.Context, s *Scope, prefix string, most int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		low, high := idRange(prefix)
		for before, done := int64(1)<<62, false; !done; {
			var seqs []int64
			err := r.do(ctx, func() error {
				done = true
				return r.db.query("SELECT first, ids FROM block_ids WHERE first < ? ORDER BY first DESC", []any{before}, func(s *sqlite3.Stmt) error {
					b := columnIDs(s)
					b.find(low, high, func(seq int64) { seqs = append(seqs, seq) })
					if before = b.first; len(seqs) > 0 {
						done = false
						return errDone
					}
					return nil
				})
			})
			for err == nil && len(seqs) > 0 {
				if most <= 0 {
					err = ErrShortID
					break
				}
				n := min(idsPage, len(seqs), most)
				most -= n
				var found []Entry
				err = r.do(ctx, func() error {
					f, err := r.db.filter(Query{Quiet: true, Snapshots: true, Scope: s})
					for _, seq := range seqs[:n] {
						if err == nil {
							err = r.page("WHERE c.seq BETWEEN ? AND ?"+f.sql, append([]any{seq, seq}, f.args...), f, &found)
						}
					}
					return err
				})
				for i := range found {
					if strings.HasPrefix(found[i].ID, prefix) && !yield(found[i], nil) {
						return
					}
				}
				seqs = seqs[n:]
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}
