package journal

import (
	"fmt"
	"strconv"
)

// applicationID marks a SQLite file as a journal: "Tatl".
const applicationID = 0x5461746c

// migrations make the schema, one after the other; the file's user_version is how many it has had. One
// that was released is never changed. docs/journal.md says what the columns hold.
var migrations = []string{`
PRAGMA application_id = ` + strconv.Itoa(applicationID) + `;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE strings (id INTEGER PRIMARY KEY, s TEXT NOT NULL UNIQUE);
CREATE TABLE kinds (
  id INTEGER PRIMARY KEY, resource INTEGER NOT NULL,
  "group" TEXT NOT NULL, version TEXT NOT NULL, plural TEXT NOT NULL, kind TEXT NOT NULL, namespaced INTEGER NOT NULL,
  schema BLOB, UNIQUE ("group", plural, version, kind, namespaced));
CREATE TABLE streams (
  id INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, selection TEXT NOT NULL,
  version TEXT NOT NULL, epoch INTEGER NOT NULL, live INTEGER NOT NULL, ever INTEGER NOT NULL,
  pipeline TEXT NOT NULL, identity TEXT NOT NULL, at INTEGER, UNIQUE (resource, namespace, selection));
CREATE TABLE objects (
  id INTEGER PRIMARY KEY, resource INTEGER NOT NULL, uid TEXT NOT NULL, namespace INTEGER NOT NULL, name TEXT NOT NULL,
  owner TEXT NOT NULL, stream INTEGER, version, top, last INTEGER NOT NULL, walk INTEGER NOT NULL, content BLOB,
  UNIQUE (resource, uid));
CREATE INDEX objects_name ON objects (name);
CREATE INDEX objects_live ON objects (stream) WHERE stream IS NOT NULL;
CREATE TABLE changes (
  seq INTEGER PRIMARY KEY, object INTEGER, kind INTEGER NOT NULL, op INTEGER NOT NULL, quiet INTEGER NOT NULL,
  version, time INTEGER NOT NULL, lag INTEGER NOT NULL, since INTEGER, manager INTEGER, owner TEXT, before BLOB, after BLOB);
CREATE INDEX changes_object ON changes (object);
CREATE TABLE gaps (
  seq INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, "from" TEXT NOT NULL, "to" TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE blocks (
  first INTEGER PRIMARY KEY, ids BLOB NOT NULL, oldest INTEGER NOT NULL, newest INTEGER NOT NULL,
  loud INTEGER NOT NULL, kinds BLOB NOT NULL);
CREATE TABLE sinks (name TEXT PRIMARY KEY, cursor INTEGER, paused INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE dead (
  id INTEGER PRIMARY KEY, sink TEXT NOT NULL, seq INTEGER NOT NULL, change TEXT NOT NULL,
  reason TEXT NOT NULL, attempts INTEGER NOT NULL, at INTEGER, body BLOB, UNIQUE (sink, seq));
`, `
CREATE TABLE rules (seq INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, at INTEGER);
INSERT INTO rules SELECT 1, '', NULL WHERE EXISTS (SELECT 1 FROM changes);
ALTER TABLE blocks ADD COLUMN sum BLOB;
ALTER TABLE changes ADD COLUMN epoch INTEGER;
`, `
ALTER TABLE sinks ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
DROP INDEX objects_name;
CREATE INDEX objects_name ON objects (name, resource, namespace);
CREATE INDEX gaps_versions ON gaps ("from", "to");
DELETE FROM blocks WHERE first < (SELECT max(first) FROM blocks)
  AND NOT EXISTS (SELECT 1 FROM changes WHERE seq >= blocks.first AND seq < blocks.first + length(blocks.ids) / 5);
ALTER TABLE blocks ADD COLUMN seen_oldest INTEGER;
ALTER TABLE blocks ADD COLUMN seen_newest INTEGER;
UPDATE blocks SET (seen_oldest, seen_newest) = (SELECT min(time + lag), max(time + lag) FROM changes
  WHERE seq >= blocks.first AND seq < blocks.first + length(blocks.ids) / 5);
UPDATE changes SET since = NULL WHERE seq IN (SELECT seq FROM gaps WHERE "to" = '');
UPDATE changes SET epoch = -later.epoch FROM (
  SELECT k.id kind, s.namespace, s.epoch, ifnull((SELECT max(g.seq) FROM gaps g
    JOIN changes c ON c.seq = g.seq JOIN kinds of ON of.id = c.kind JOIN strings n ON n.id = g.namespace
    WHERE instr(g.reason, 'history-changed') AND of.resource = k.resource AND n.s = s.namespace), 1 << 62) began
  FROM streams s JOIN strings r ON r.s = s.resource JOIN kinds k ON k.resource = r.id WHERE s.epoch > 1) later
WHERE changes.kind = later.kind AND changes.seq >= later.began
  AND changes.seq < ifnull((SELECT min(seq) FROM rules WHERE fingerprint <> ''), 1 << 62)
  AND EXISTS (SELECT 1 FROM rules WHERE fingerprint = '')
  AND (later.namespace = '' OR later.namespace = (SELECT s FROM strings WHERE id = ifnull(
    (SELECT namespace FROM objects WHERE id = changes.object), (SELECT namespace FROM gaps WHERE gaps.seq = changes.seq))));
`, `
ALTER TABLE streams ADD COLUMN served INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN sum INTEGER;
ALTER TABLE changes ADD COLUMN form INTEGER;
`}

// oldestRead is the oldest format that is read as it is; all can be migrated.
const oldestRead = 1

// prepareFile gives a new file the settings that cannot be changed later, or checks that an older one is a journal.
// db.format is then how many migrations it has had.
func (db *db) prepareFile(fresh bool) error {
	tables, err := db.integer("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	if !fresh && tables == 0 {
		return &FormatError{db.path, "it has no tables: it may be a copy that lacks its log (-wal); tattler journal backup makes whole ones"}
	}
	if tables == 0 {
		// Before the first table: neither can be changed later without rewriting the file.
		if err := db.script("PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
			return err
		}
		if err := db.c.EnableChecksums("main"); err != nil {
			return err
		}
	}
	if err := db.script("PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	if tables == 0 { // SQLite has removed the log of an empty file
		if err := makeFiles(db.path); err != nil {
			return err
		}
	}
	return db.version(tables > 0)
}

// version notes the file's format: how many migrations it has had.
func (db *db) version(tables bool) error {
	app, err := db.integer("PRAGMA application_id")
	if err != nil {
		return err
	}
	version, err := db.integer("PRAGMA user_version")
	if err != nil {
		return err
	}
	switch {
	case tables && app != applicationID:
		return &FormatError{db.path, "this SQLite file is no journal"}
	case version > int64(len(migrations)):
		return &FormatError{db.path, fmt.Sprintf("it has format %d, made by a newer tattler; this one knows %d", version, len(migrations))}
	}
	if sums, err := db.integer("PRAGMA checksum_verification"); err != nil || sums != 1 {
		return orElse(err, &DamagedError{db.path, "header", fmt.Errorf("page checksums are off")})
	}
	db.format = int(version)
	return nil
}

// orElse returns the first error. What ends something that failed returns the same error again, so the second is only
// of interest without a first.
func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
