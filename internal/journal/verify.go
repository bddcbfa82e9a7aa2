package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Part is the kind of data that damage affects.
type Part string

const (
	// Page is damage of the file: every read of the page fails.
	Page Part = "page"
	// Content is damage of an object's JSON before or after a change, or of its state.
	Content Part = "content"
	// Index is damage of the data by which changes are found: some may be missed.
	Index Part = "index"
)

// Damage is a finding of Verify.
type Damage struct {
	Part Part
	Text string // what is damaged and how
}

// Report is the result of Verify.
type Report struct {
	// Changes and Objects count what was read.
	Changes, Objects int
	// Damaged counts the findings, By counts them by Part.
	Damaged int
	By      map[Part]int
}

// Verifying holds the callbacks of Verify; each may be nil.
type Verifying struct {
	// Progress reports how much of a part is done: pages, objects or blocks.
	Progress func(part string, done, total int64)
	// Damage reports each finding.
	Damage func(Damage)
}

// verifier is one run of Verify.
type verifier struct {
	*Reader
	v   Verifying
	rep Report
}

func (r *verifier) damage(p Part, format string, args ...any) {
	r.rep.Damaged++
	r.rep.By[p]++
	if r.v.Damage != nil {
		r.v.Damage(Damage{p, fmt.Sprintf(format, args...)})
	}
}

func (r *verifier) progress(part string, done, total int64) {
	if r.v.Progress != nil {
		r.v.Progress(part, done, total)
	}
}

// Verify reads everything: pages, contents with their checksums, and the blocks. The report holds the findings; an error
// says that Verify could not finish.
func (r *Reader) Verify(ctx context.Context, v Verifying) (Report, error) {
	run := verifier{Reader: r, v: v, rep: Report{By: map[Part]int{}}}
	for _, part := range []func(context.Context) error{run.pages, run.objects, run.blocks} {
		if err := run.unreadable("the file", part(ctx)); err != nil {
			return run.rep, err
		}
	}
	return run.rep, nil
}

// unreadable reports an error that is damage, of what; it returns other errors.
func (r *verifier) unreadable(what string, err error) error {
	err = classify("read", r.path, err)
	var d *DamagedError
	if errors.As(err, &d) {
		r.damage(Page, "%s: %s: %v", what, d.What, d.Err)
		return nil
	}
	return err
}

// maxPages bounds the damaged pages that are named.
const maxPages = 10_000

func (r *verifier) pages(ctx context.Context) error {
	err := r.do(ctx, func() error {
		n, err := r.db.integer("PRAGMA page_count")
		if err != nil {
			return err
		}
		r.progress("pages", 0, n)
		old := r.db.c.SetInterrupt(ctx) // it can take minutes
		defer r.db.c.SetInterrupt(old)
		err = r.db.query(fmt.Sprintf("PRAGMA integrity_check(%d)", maxPages), nil, func(s *sqlite3.Stmt) error {
			for text := range strings.Lines(s.ColumnText(0)) {
				if text = strings.TrimSpace(text); text != "ok" && !strings.HasPrefix(text, "*** in database") {
					r.damage(Page, "%s", text)
				}
			}
			return nil
		})
		if err == nil {
			r.progress("pages", n, n)
			err = r.references()
		}
		return err
	})
	if ctx.Err() != nil {
		return fmt.Errorf("verify journal: %w", ctx.Err())
	}
	return err
}

// references looks for rows that refer to a missing row. Those of changes are found when their entries are made.
func (r *verifier) references() error {
	for _, ref := range []struct{ from, column, to, key string }{
		{"resources", "cluster", "clusters", "id"},
		{"kinds", "resource", "resources", "id"},
		{"streams", "resource", "resources", "id"},
		{"namespaces", "cluster", "clusters", "id"},
		{"objects", "resource", "resources", "id"},
		{"objects", "namespace", "namespaces", "id"},
		{"live", "object", "objects", "id"},
		{"live", "stream", "streams", "id"},
		{"contents", "seq", "changes", "seq"},
	} {
		n, err := r.db.integer(fmt.Sprintf("SELECT count(*) FROM %s WHERE %s NOT IN (SELECT %s FROM %s)", ref.from, ref.column, ref.key, ref.to))
		if err != nil {
			return err
		}
		if n > 0 {
			r.damage(Index, "%d rows of %s refer to no row of %s", n, ref.from, ref.to)
		}
	}
	return nil
}

func (r *verifier) objects(ctx context.Context) error {
	total := int64(0)
	for after := int64(0); ; {
		var ids []int64
		err := r.do(ctx, func() error {
			var err error
			if total == 0 {
				total, err = r.db.integer("SELECT count(*) FROM objects")
			}
			if err == nil {
				err = r.db.query("SELECT id FROM objects WHERE id > ? ORDER BY id LIMIT 100", []any{after}, func(s *sqlite3.Stmt) error {
					ids = append(ids, s.ColumnInt64(0))
					return nil
				})
			}
			for _, id := range ids {
				if err == nil {
					err = r.unreadable(fmt.Sprintf("object %d", id), r.object(id))
				}
			}
			return err
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
		r.progress("objects", int64(r.rep.Objects), total)
	}
}

// object reads an object's chain, from its state backwards.
func (r *verifier) object(id int64) error {
	r.rep.Objects++
	o, err := r.named(id)
	if err != nil {
		return err
	}
	var next []byte
	if o.content != nil {
		if next, err = r.codec.open(o.content, nil); err != nil {
			r.damage(Content, "last state of %s: %v", o.name, err)
		}
	}
	newest := int64(0)
	err = r.db.query(selectLinks+"ORDER BY c.seq DESC", []any{id}, func(s *sqlite3.Stmt) error {
		l := columnLink(s)
		newest = max(newest, l.seq)
		r.rep.Changes++
		base := next
		next = nil
		err := r.codec.unwind(r.path, []link{l}, base, func(_ *link, before, _ []byte) error {
			next = before
			return nil
		})
		var d *DamagedError
		if errors.As(err, &d) {
			r.damage(Content, "%s, of %s: %v", d.What, o.name, d.Err)
		}
		return nil
	})
	if err == nil && o.content != nil && o.last != newest {
		r.damage(Index, "%s ends with change %d, not %d", o.name, newest, o.last)
	}
	return err
}

// verified is an object as Verify needs it.
type verified struct {
	name    string // for messages
	last    int64
	content []byte
}

func (r *verifier) named(id int64) (o verified, err error) {
	err = r.db.query(`SELECT ifnull(k.plural, '?'), ifnull(n.name, ''), o.name, l.last, l.content FROM objects o LEFT JOIN live l ON l.object = o.id
		LEFT JOIN resources k ON k.id = o.resource LEFT JOIN namespaces n ON n.id = o.namespace WHERE o.id = ?`, []any{id}, func(s *sqlite3.Stmt) error {
		o = verified{s.ColumnText(0) + " " + strings.TrimPrefix(s.ColumnText(1)+"/"+s.ColumnText(2), "/"), s.ColumnInt64(3), blob(s, 4)}
		return nil
	})
	return o, err
}

// blocks compares the blocks with their changes and looks for changes without a block.
func (r *verifier) blocks(ctx context.Context) error {
	total := int64(0)
	for from, next, done := int64(0), int64(1), int64(0); ; done++ {
		found := false
		err := r.do(ctx, func() error {
			var b block
			var err error
			if total == 0 {
				total, err = r.db.integer("SELECT count(*) FROM blocks")
			}
			if err == nil {
				b.first = math.MaxInt64
				err = r.db.query(selectBlocks+"WHERE first > ? ORDER BY first LIMIT 1", []any{from}, func(s *sqlite3.Stmt) error {
					b, found = columnBlock(s), true
					return nil
				})
			}
			if err == nil && next < b.first {
				err = r.between(from, b.first-1)
			}
			if err != nil || !found {
				return err
			}
			from, next = b.first, b.next()
			return r.unreadable(fmt.Sprintf("changes %d to %d", b.first, b.next()-1), r.block(&b))
		})
		if err != nil || !found {
			return err
		}
		r.progress("blocks", done+1, total)
	}
}

// between looks for changes that are in no block, behind a given one. That block may have grown since it was read, or be
// gone with its changes.
func (r *verifier) between(block, to int64) error {
	from, err := r.db.integer("SELECT first + size FROM blocks WHERE first = ?", block)
	if err != nil {
		return err
	}
	return r.db.query("SELECT count(*), min(seq), max(seq) FROM changes WHERE seq BETWEEN ? AND ?", []any{max(from, block), to}, func(s *sqlite3.Stmt) error {
		if n := s.ColumnInt64(0); n > 0 {
			r.damage(Index, "%d changes from %d to %d are in no block", n, s.ColumnInt64(1), s.ColumnInt64(2))
		}
		return nil
	})
}

func (r *verifier) block(b *block) error {
	var records []record
	var actual tallies
	if err := r.db.readIDs(b); err != nil {
		return err
	}
	if len(b.ids) != b.size*idSize {
		r.damage(Index, "block %d has %d bytes of ids of %d changes", b.first, len(b.ids), b.size)
	}
	err := r.db.query(selectRecords+byRange, []any{b.first, b.next() - 1}, func(s *sqlite3.Stmt) error {
		records = append(records, columnRecord(s))
		return nil
	})
	for i := range records {
		c := &records[i]
		e, entryErr := r.entry(c)
		if entryErr != nil {
			return entryErr
		}
		if !e.Op.HasObject() {
			r.rep.Changes++
		}
		low, _ := idRange(e.ID)
		known := false
		b.find(low, low, func(seq int64) { known = known || seq == e.Seq })
		if !known || !b.covers(c) {
			r.damage(Index, "change %d does not match its block %d", e.Seq, b.first)
		}
		if !c.quiet {
			actual.add(c.time, c.kind, c.namespace, c.op, c.severity)
		}
	}
	if err == nil {
		err = r.uses(b)
	}
	if err != nil {
		return err
	}
	n, err := r.db.integer("SELECT count(*) FROM changes c JOIN objects o ON o.id = c.object WHERE c.seq BETWEEN ? AND ? AND c.namespace <> o.namespace",
		b.first, b.next()-1)
	if err != nil {
		return err
	}
	if n > 0 {
		r.damage(Index, "%d changes of block %d are in other namespaces than their objects", n, b.first)
	}
	reached, err := r.db.reached(b.first)
	if err == nil && b.reached != max(reached, b.newest, b.seen.newest) {
		r.damage(Index, "block %d does not match the times before it", b.first)
	}
	var stored []byte
	if err != nil {
		return err
	}
	err = r.db.query("SELECT counts FROM block_counts WHERE first = ?", []any{b.first}, func(s *sqlite3.Stmt) error {
		stored = blob(s, 0)
		return nil
	})
	if err == nil && b.size > 0 && !bytes.Equal(stored, actual.bytes()) {
		r.damage(Index, "the counts of block %d do not match its changes", b.first)
	}
	return err
}

// uses looks for changes of a block that use a namespace or a manager whose noted last use is too long ago: retention would
// remove the name too early.
func (r *verifier) uses(b *block) error {
	n, err := r.db.integer(`SELECT count(*) FROM changes c LEFT JOIN namespaces n ON n.id = c.namespace LEFT JOIN managers m ON m.id = c.manager
		WHERE c.seq BETWEEN ?1 AND ?2 AND (c.seq >= n.last + ?3 OR c.seq >= m.last + ?3)`, b.first, b.next()-1, notedEvery)
	if n > 0 {
		r.damage(Index, "%d changes of block %d use a name that is noted as unused", n, b.first)
	}
	return err
}

// covers reports whether a block matches a change in all but its id.
func (b *block) covers(c *record) bool {
	in := func(s set, n int64) bool { return n == 0 || s.has(map[int64]bool{n: true}) }
	seen := c.time + c.lag
	switch {
	case c.time < b.oldest, c.time > b.newest, !c.quiet && !in(b.kinds, c.kind):
		return false
	case seen < b.seen.oldest || seen > b.seen.newest:
		return false
	}
	return b.sum.ops>>c.op&1 == 1 && b.sum.severities>>c.severity&1 == 1 && in(b.sum.kinds, c.kind) && in(b.sum.namespaces, c.namespace) && in(b.sum.managers, c.manager)
}
