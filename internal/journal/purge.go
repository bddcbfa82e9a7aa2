package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Purge removes what PlanPurge returns, and erases it: afterwards neither free pages nor the log hold any of it. Old
// blocks of the disk, and copies of the file, are out of reach.
//
// It rewrites the file, which takes room for two copies of what is left. On a full disk that comes from what it removed
// and from the reserve, which it releases. After an error or a crash the purge may be half done; a second call finishes
// it. progress, if not nil, receives the number of changes removed so far.
func (j *Journal) Purge(ctx context.Context, p Purge, progress func(removed int64)) error {
	var (
		spans   []span
		cluster any
	)
	err := j.do(ctx, "write", func() error { return errors.Join(removeReserve(reservePath(j.path)), j.db.copyLog()) })
	if err != nil {
		return err
	}
	err = j.write(ctx, "write", func() (err error) {
		if spans, err = j.db.purged(p); err == nil {
			err = j.db.finishes(p)
		}
		if err == nil {
			cluster, err = j.clusterOf(p)
		}
		if err != nil {
			return err
		}
		j.shares = shares{} // taken anew when they are needed
		return j.db.exec("INSERT OR REPLACE INTO meta VALUES (?, ?)", purging, p.note())
	})
	if err != nil {
		return err
	}
	removed := int64(0)
	for _, s := range spans {
		if err == nil {
			err = j.purgeSpan(ctx, s, &p, cluster, &removed, progress)
		}
	}
	if err == nil {
		err = j.giveAll(ctx)
	}
	if err != nil {
		return err
	}
	if p.OtherRules {
		err = j.forgetOthers(ctx)
	} else {
		err = j.cutFirst(ctx, cluster)
	}
	if err != nil {
		return err
	}
	err = j.tight(ctx, func() error {
		if err := errors.Join(j.db.exec("DELETE FROM dead WHERE "+orphaned), j.removeAllUnused()); err != nil || p.OtherRules {
			return err
		}
		return j.db.exec(cutLetters, purgedForm)
	})
	if err != nil {
		return err
	}
	return j.erase(ctx)
}

// purgeSpan removes the changes of a span, in smaller steps once the disk is full.
func (j *Journal) purgeSpan(ctx context.Context, s span, p *Purge, cluster any, removed *int64, progress func(removed int64)) error {
	rows := int64(purgeRows)
	for done := false; !done; {
		var n, last int64
		err := j.tight(ctx, func() (err error) {
			n, last, err = j.purgeSome(s, p, cluster, rows)
			return err
		})
		switch {
		case errors.Is(err, ErrFull) && rows > retainRows:
			rows = retainRows
			continue
		case err != nil:
			return err
		}
		*removed, done, s.from = *removed+n, n < rows, last+1
		if progress != nil {
			progress(*removed)
		}
	}
	return nil
}

// purgeSome removes the first changes of a span, and returns how many and the last of them.
func (j *Journal) purgeSome(s span, what *Purge, cluster any, rows int64) (n, last int64, err error) {
	p := pruner{j: j, done: &Retained{}, purge: true, cut: !what.Until.IsZero()}
	var victims []victim
	err = p.find(&victims, "SELECT "+ofVictims+purgedRows+"ORDER BY seq LIMIT ?5", s.from, s.to, what.before(), cluster, rows)
	if err != nil || len(victims) == 0 {
		return 0, s.to, err
	}
	return int64(len(victims)), victims[len(victims)-1].seq, p.remove(victims)
}

// cutFirst purges the before of each object's oldest change: the change that led to it is gone, now or earlier.
func (j *Journal) cutFirst(ctx context.Context, cluster any) error {
	last := int64(0)
	for from := int64(0); from <= last; from += purgeRows {
		err := j.tight(ctx, func() (err error) {
			if last, err = j.db.integer("SELECT max(id) FROM objects"); err != nil {
				return err
			}
			return j.db.exec(`UPDATE contents SET before = ?1 WHERE before IS NOT NULL AND substr(before, 1, 1) <> ?2
				AND seq IN (SELECT seq FROM changes WHERE `+ofKinds(5)+`
				AND seq IN (SELECT min(seq) FROM changes WHERE object >= ?3 AND object < ?4 GROUP BY object))`, purged(), purgedForm, from, from+purgeRows, cluster)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetOthers forgets the streams whose states were made under other rules.
func (j *Journal) forgetOthers(ctx context.Context) error {
	var u Uncovered
	err := j.do(ctx, "read", func() (err error) {
		u, err = j.db.uncovered()
		return err
	})
	for _, st := range u.Streams {
		if err == nil {
			err = j.Forget(ctx, st)
		}
	}
	return err
}

// erase rewrites the file, so that it holds only the tables, and empties the log. Unused pages go first: the disk may
// have no room for the vacuum otherwise.
func (j *Journal) erase(ctx context.Context) error {
	if err := j.giveAll(ctx); err != nil {
		return err
	}
	return j.do(ctx, "write", func() error {
		// The vacuum's copy goes to a file: it may be too big for memory.
		if err := j.db.script("PRAGMA temp_store = FILE; PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		old := j.db.c.SetInterrupt(ctx) // it can take minutes
		err := j.db.script("VACUUM")
		j.db.c.SetInterrupt(old)
		if err != nil {
			return orElse(ctx.Err(), err)
		}
		if err := j.db.truncateLog(); err != nil {
			return err
		}
		if err := j.db.exec("DELETE FROM meta WHERE key = ?", purging); err != nil {
			return err
		}
		return j.db.script("PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY")
	})
}

// giveAll returns all unused pages to the file system.
func (j *Journal) giveAll(ctx context.Context) error {
	for free := int64(1); free > 0; {
		err := j.tight(ctx, func() (err error) {
			if _, free, _, err = j.db.pages(); err != nil || free == 0 {
				return err
			}
			return j.db.exec("PRAGMA incremental_vacuum(256)") // retainPages
		})
		if err != nil {
			return err
		}
	}
	return j.do(ctx, "write", j.db.copyLog)
}

// truncateLog copies the log into the file and empties it, which fails while another connection reads.
func (db *db) truncateLog() error {
	if err := db.refresh(); err != nil {
		return err
	}
	busy, err := db.integer("PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && busy != 0 {
		err = fmt.Errorf("empty the log: another process reads the journal: %w", sqlite3.BUSY)
	}
	return err
}
