package journal

import (
	"errors"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// remove removes changes, sorted by number.
func (p *pruner) remove(victims []victim) error {
	objects := map[int64][]int64{}
	for _, v := range victims {
		objects[v.object] = append(objects[v.object], v.seq)
		p.removed++
		if v.quiet {
			p.quiet++
		}
	}
	for object, seqs := range objects {
		if err := p.object(object, seqs); err != nil {
			return err
		}
	}
	return p.blocks(victims)
}

// blocks removes blocks whose changes are all gone. The newest stays: it holds the next sequence number.
func (p *pruner) blocks(victims []victim) error {
	for next, i := int64(0), 0; i < len(victims); i++ {
		if victims[i].seq < next {
			continue
		}
		first := int64(0)
		err := p.j.db.query(blockOf, []any{victims[i].seq}, func(s *sqlite3.Stmt) error {
			first, next = s.ColumnInt64(0), s.ColumnInt64(1)
			return nil
		})
		if err == nil && first < p.j.tail.first {
			err = p.block(first, next)
		}
		if err == nil && slices.ContainsFunc(victims[i:], func(v victim) bool { return v.seq < next && !v.quiet }) {
			err = p.recount(first, next)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// block removes a block if its changes are gone. What the blocks behind it have reached may be lower then: after a time ahead
// of all others, which only this one had.
func (p *pruner) block(first, next int64) error {
	db := p.j.db
	if left, err := db.integer("SELECT EXISTS (SELECT 1 FROM changes WHERE seq >= ? AND seq < ?)", first, next); err != nil || left != 0 {
		return err
	}
	for _, table := range []string{"blocks", "block_ids", "block_counts"} {
		if err := db.exec("DELETE FROM "+table+" WHERE first = ?", first); err != nil {
			return err
		}
	}
	reached, err := db.reached(first)
	if err != nil {
		return err
	}
	var lower []block
	err = db.query(selectBlocks+"WHERE first > ? ORDER BY first", []any{first}, func(s *sqlite3.Stmt) error {
		b := columnBlock(s)
		reached = max(reached, b.newest, b.seen.newest)
		if b.reached == reached {
			return errDone
		}
		b.reached = reached
		lower = append(lower, b)
		return nil
	})
	for i := range lower {
		if err == nil {
			err = db.exec("UPDATE blocks SET reached = ? WHERE first = ?", lower[i].reached, lower[i].first)
		}
		p.j.reread = p.j.reread || lower[i].first == p.j.tail.first
	}
	return err
}

// recount stores the counts of a block that is left, after some of its listed changes were removed.
func (p *pruner) recount(first, next int64) error {
	if first >= p.j.tail.first {
		p.j.reread = true
	}
	c, err := p.j.db.recount(first, next)
	if err != nil {
		return err
	}
	return p.j.db.saveCounts(first, c)
}

const blockOf = "SELECT first, first + size FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1"

// object removes changes of one object, sorted by number; object 0 stands for gaps and absences.
func (p *pruner) object(object int64, seqs []int64) error {
	db := p.j.db
	if object == 0 {
		for _, seq := range seqs {
			if err := errors.Join(db.exec("DELETE FROM gaps WHERE seq = ?", seq), db.exec("DELETE FROM changes WHERE seq = ?", seq)); err != nil {
				return err
			}
		}
		return nil
	}
	runs, err := p.runs(object, seqs)
	if err != nil {
		return err
	}
	for _, run := range slices.Backward(runs) {
		if err := p.run(object, run); err != nil {
			return err
		}
	}
	if err := p.j.forgetStories(object, seqs, p.purge); err != nil {
		return err
	}
	newest := seqs[len(seqs)-1]
	if err := db.exec("UPDATE live SET last = ifnull((SELECT max(seq) FROM changes WHERE object = ?1), 0) WHERE object = ?1 AND last = ?2", object, newest); err != nil {
		return err
	}
	return db.exec(`DELETE FROM objects WHERE id = ?1
		AND NOT EXISTS (SELECT 1 FROM changes WHERE object = ?1) AND NOT EXISTS (SELECT 1 FROM live WHERE object = ?1)`, object)
}

// runs splits an object's changes into runs of consecutive ones.
func (p *pruner) runs(object int64, seqs []int64) (runs [][]int64, err error) {
	i, open := 0, false
	err = p.j.db.query("SELECT seq FROM changes WHERE object = ? AND seq BETWEEN ? AND ? ORDER BY seq", []any{object, seqs[0], seqs[len(seqs)-1]},
		func(s *sqlite3.Stmt) error {
			switch goes := s.ColumnInt64(0) == seqs[i]; {
			case goes && open:
				runs[len(runs)-1] = append(runs[len(runs)-1], seqs[i])
				i++
			case goes:
				runs, open = append(runs, []int64{seqs[i]}), true
				i++
			default:
				open = false
			}
			return nil
		})
	return runs, err
}

// run removes consecutive changes of an object. The change before them gets its own after, which the first of them
// held as its before. With cut, the change behind them loses its before, which is what the last of them led to.
func (p *pruner) run(object int64, seqs []int64) error {
	db := p.j.db
	prev, err := db.integer("SELECT max(seq) FROM changes WHERE object = ? AND seq < ?", object, seqs[0])
	if err != nil {
		return err
	}
	if prev != 0 {
		after, err := p.bridge(object, prev, seqs[len(seqs)-1])
		if err != nil {
			return err
		}
		if after != nil {
			if err := db.setAfter(prev, after); err != nil {
				return err
			}
		}
	}
	for _, seq := range seqs {
		if err := errors.Join(db.exec("DELETE FROM contents WHERE seq = ?", seq), db.exec("DELETE FROM changes WHERE seq = ?", seq)); err != nil {
			return err
		}
	}
	if !p.cut {
		return nil
	}
	return db.exec("UPDATE contents SET before = ? WHERE before IS NOT NULL AND seq = (SELECT min(seq) FROM changes WHERE object = ? AND seq > ?)",
		purged(), object, seqs[len(seqs)-1])
}

// bridge returns the after of prev, to be read without the changes up to last: a delta from what follows, or whole. It
// is nil if prev needs none.
func (p *pruner) bridge(object, prev, last int64) ([]byte, error) {
	links, state, err := p.j.db.chain(object, prev)
	if err != nil {
		return nil, err
	}
	if !leaves(links[0].op) || isWhole(links[0].after) {
		return nil, nil
	}
	var base, after []byte // base is the before of the change that follows
	whole := p.cut || links[len(links)-1].seq <= last && state == nil
	if state != nil {
		if base, err = p.j.codec.open(state, nil); err != nil {
			return lost(), nil //nolint:nilerr // it could not be read before, either
		}
	}
	err = p.j.codec.unwind(p.j.path, links, base, func(l *link, b, a []byte) error {
		if l.seq > last {
			base = b
		}
		if l.seq == prev {
			after = a
		}
		return nil
	})
	var d *DamagedError
	switch {
	case errors.As(err, &d):
		return lost(), nil // it could not be read before, either
	case err != nil:
		return nil, err
	case whole:
		return p.j.codec.whole(after), nil
	default:
		return p.j.codec.diff(after, base), nil
	}
}
