package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/owners"
	"github.com/tattler-dev/tattler/internal/story"
)

// Stories are facts that changes prove: Append follows each change that it writes, and writes what that proves in the same
// transaction. A change is never written again for it. The row of a story says how it stands now; its states, and what it is
// part of, have rows of their own with the change that proved them.

// follower follows the changes of a journal.
type follower struct {
	engine *story.Engine
	rows   map[string]int64 // of stories by their ids
}

// storyRows bounds the cached numbers of stories.
const storyRows = 4096

// follow follows a change that was written, and writes the states that it proves.
func (w *writer) follow(object int64, r *Row) error {
	if r.Story == nil {
		return nil
	}
	if w.stories.engine == nil {
		if err := w.continued(r.Seq - 1); err != nil {
			return err
		}
	}
	r.Story.Seq = r.Seq
	updates, err := w.stories.engine.Apply(r.Story)
	if err != nil {
		return err
	}
	for i := range updates {
		if err := w.story(object, &updates[i]); err != nil {
			return err
		}
	}
	return nil
}

// continued makes an engine that resumes from what the file has.
func (w *writer) continued(seq int64) error {
	w.stories.engine = story.New(w.cluster, past{w.db})
	all, err := w.db.stories("WHERE s.end IS NULL OR s.last > ? ORDER BY s.id", seq-story.Window)
	if err != nil {
		return err
	}
	stories := make([]*story.Story, len(all))
	for i := range all {
		stories[i] = &all[i].Story
	}
	return w.stories.engine.Load(stories, seq)
}

// story writes what a change proved about a story of an object.
func (w *writer) story(object int64, u *story.Update) error {
	s := &u.Story
	id, err := w.storyRow(object, s)
	if err != nil {
		return err
	}
	for n := range u.States {
		st := &u.States[n]
		facts, err := json.Marshal(st.Facts)
		if err != nil {
			return fmt.Errorf("encode facts: %w", err)
		}
		err = w.db.exec("INSERT INTO states VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			id, st.Seq, n, int(st.Word), st.At, st.Since, severityNumber(st.Severity), string(facts))
		if err != nil {
			return err
		}
	}
	w.dirty[id] = *s
	return nil
}

// storyRow returns the number of a story, and makes a row if it has none.
func (w *writer) storyRow(object int64, s *story.Story) (int64, error) {
	if id, ok := w.stories.rows[s.ID]; ok {
		return id, nil
	}
	id, err := w.db.integer("SELECT id FROM stories WHERE key = ?", s.ID)
	if err != nil {
		return 0, err
	}
	if id == 0 {
		of, err := w.names.kindID(s.Object.Kind)
		if err != nil {
			return 0, err
		}
		var manager any
		if s.Manager != "" {
			if manager, err = w.names.manager(s.Manager, w.tail.next()); err != nil {
				return 0, err
			}
		}
		err = w.db.exec(`INSERT INTO stories (key, object, "of", kind, cause, manager, begin, unknown, first, last, reached, changes, worst, moved, "all", facts)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, '')`,
			s.ID, object, of, int(s.Kind), s.Cause, manager, s.Begin, s.Unknown, s.First)
		if err != nil {
			return 0, err
		}
		id = w.db.c.LastInsertRowID()
	}
	if w.stories.rows == nil || len(w.stories.rows) >= storyRows {
		w.stories.rows = map[string]int64{}
	}
	w.stories.rows[s.ID] = id
	return id, nil
}

// saveStories writes how the stories stand that changed in this transaction.
func (w *writer) saveStories() error {
	for _, id := range slices.Sorted(maps.Keys(w.dirty)) {
		s := w.dirty[id]
		facts, err := json.Marshal(s.Facts)
		if err != nil {
			return fmt.Errorf("encode facts: %w", err)
		}
		err = w.db.exec(`UPDATE stories SET end = ?, last = ?, reached = ?, changes = ?, worst = ?, moved = ?, "all" = ?, parent = ?, via = ?, facts = ? WHERE id = ?`,
			s.End, s.Last, s.State.Seq, s.Changes, severityNumber(s.Worst), s.Moved, severityNumber(s.All), textOrNull(s.Parent), textOrNull(s.Via), string(facts), id)
		if err != nil {
			return err
		}
	}
	return nil
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// severityNumber returns the number of a severity in the file.
func severityNumber(s event.Severity) int { return max(0, slices.Index(severities[:], s)) }

const selectStories = `SELECT s.id, s.key, s.kind, s."of", s.cause, ifnull(m.name, ''), s.begin, s.unknown, s.end, s.first, s.last, s.changes, s.worst,
	ifnull(s.parent, ''), ifnull(s.via, ''), s.facts, o.id, o.name, o.uid, o.namespace, o.created, n.name, o.owner, s.moved, s."all"
	FROM stories s JOIN objects o ON o.id = s.object JOIN namespaces n ON n.id = o.namespace LEFT JOIN managers m ON m.id = s.manager `

// storyRecord is the row of a story, with the numbers of its object.
type storyRecord struct {
	story.Story
	id, of, object, namespace, created int64
}

// stories reads stories with their last states.
func (db *db) stories(where string, args ...any) ([]storyRecord, error) {
	var all []storyRecord
	err := db.query(selectStories+where, args, func(s *sqlite3.Stmt) error {
		r := storyRecord{id: s.ColumnInt64(0), of: s.ColumnInt64(3), object: s.ColumnInt64(16), namespace: s.ColumnInt64(19), created: s.ColumnInt64(20)}
		r.Story = story.Story{
			ID: s.ColumnText(1), Kind: story.Kind(s.ColumnInt(2)), Cause: s.ColumnInt64(4), Manager: s.ColumnText(5), //nolint:gosec // it was written from one
			Begin: columnTime(s, 6), Unknown: s.ColumnBool(7), End: columnTime(s, 8), First: s.ColumnInt64(9), Last: s.ColumnInt64(10), Changes: s.ColumnInt(11),
			Worst: severities[s.ColumnInt(12)], Parent: s.ColumnText(13), Via: s.ColumnText(14),
		}
		r.Owner, r.Moved, r.All = ownerOf(s.ColumnText(22)), s.ColumnInt64(23), severities[s.ColumnInt(24)]
		r.Object.Name, r.Object.UID, r.Object.Namespace = s.ColumnText(17), uid(s.ColumnText(18)), s.ColumnText(21)
		if err := json.Unmarshal(s.ColumnRawText(15), &r.Facts); err != nil {
			return damaged(db.path, "stories", "facts of story %s: %v", r.ID, err)
		}
		all = append(all, r)
		return nil
	})
	n := newNames(db)
	for i := range all {
		if err != nil {
			return nil, err
		}
		r := &all[i]
		if r.Object.Kind, err = n.kind(r.of); err != nil {
			return nil, err
		}
		var states []story.State
		if states, err = db.states("WHERE story = ? ORDER BY seq DESC, n DESC LIMIT 1", r.id); err == nil && len(states) == 0 {
			err = damaged(db.path, "stories", "story %s has no state", r.ID)
		}
		if err == nil {
			r.State = states[0]
		}
	}
	return all, err
}

// states reads states of stories.
func (db *db) states(where string, args ...any) (all []story.State, err error) {
	err = db.query("SELECT seq, word, at, since, severity, facts FROM states "+where, args, func(s *sqlite3.Stmt) error {
		st := story.State{
			Seq: s.ColumnInt64(0), Word: story.Word(s.ColumnInt(1)), At: columnTime(s, 2), Since: columnTime(s, 3), Severity: severities[s.ColumnInt(4)], //nolint:gosec // it was written from one
		}
		if err := json.Unmarshal(s.ColumnRawText(5), &st.Facts); err != nil {
			return damaged(db.path, "states", "facts of change %d: %v", st.Seq, err)
		}
		all = append(all, st)
		return nil
	})
	return all, err
}

const ownerByUID = `SELECT o.owner FROM kinds k JOIN resources r ON r.id = k.resource JOIN clusters c ON c.id = r.cluster
	JOIN objects o ON o.resource = r.id AND o.uid = ?2 WHERE k.kind = ?1 AND ` + clusterKey + ` = ?3`

// forgetStories removes what removed changes of an object proved. A story goes with the change that proved its last state; one
// that is open stays, unless its object is purged.
func (j *Journal) forgetStories(object int64, seqs []int64, purged bool) error {
	db := j.db
	stories := map[int64]string{}
	for _, seq := range seqs {
		err := db.query("SELECT id, key FROM stories WHERE object = ? AND reached = ? AND (end IS NOT NULL OR ?)", []any{object, seq, purged}, func(s *sqlite3.Stmt) error {
			stories[s.ColumnInt64(0)] = s.ColumnText(1)
			return nil
		})
		if err == nil {
			err = db.exec("DELETE FROM states WHERE seq = ?1 AND (?2 OR seq <> (SELECT reached FROM stories WHERE id = story))", seq, purged)
		}
		if err == nil {
			err = db.exec("UPDATE stories SET cause = 0, manager = NULL, unknown = 1 WHERE object = ? AND cause = ?", object, seq)
		}
		if err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(stories)) {
		if err := errors.Join(db.exec("DELETE FROM states WHERE story = ?", id), db.exec("DELETE FROM stories WHERE id = ?", id)); err != nil {
			return err
		}
		delete(j.stories.rows, stories[id])
		if j.stories.engine != nil {
			j.stories.engine.Forget(stories[id])
		}
	}
	return nil
}

// past answers an engine from the file.
type past struct{ db *db }

// Owner implements story.Past.
func (p past) Owner(kind string, n owners.Node) (owner *event.Owner, err error) {
	err = p.db.query(ownerByUID, []any{kind, n.UID, n.Cluster}, func(s *sqlite3.Stmt) error {
		owner = ownerOf(s.ColumnText(0))
		return errDone
	})
	return owner, err
}
