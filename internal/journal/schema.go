package journal

import (
	"fmt"
	"strconv"
)

const (
	// applicationID marks a SQLite file as a journal: "Tatl".
	applicationID = 0x5461746c
	// format is the file's user_version. Formats 1 to 10 were never released.
	format = 11
)

// schema makes the tables of an empty file. docs/journal.md describes the columns.
var schema = `
PRAGMA application_id = ` + strconv.Itoa(applicationID) + `;
PRAGMA user_version = ` + strconv.Itoa(format) + `;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE clusters (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, absent INTEGER, absence INTEGER);
CREATE TABLE resources (
  id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL, "group" TEXT NOT NULL, plural TEXT NOT NULL, short TEXT NOT NULL,
  UNIQUE (cluster, "group", plural));
CREATE TABLE kinds (
  id INTEGER PRIMARY KEY, resource INTEGER NOT NULL, version TEXT NOT NULL, kind TEXT NOT NULL, namespaced INTEGER NOT NULL,
  UNIQUE (resource, version, kind, namespaced));
CREATE TABLE schemas (kind INTEGER NOT NULL, first INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (kind, first)) WITHOUT ROWID;
CREATE TABLE namespaces (
  id INTEGER PRIMARY KEY AUTOINCREMENT, cluster INTEGER NOT NULL, name TEXT NOT NULL, last INTEGER NOT NULL,
  UNIQUE (name, cluster));
CREATE TABLE managers (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, last INTEGER NOT NULL);
CREATE TABLE streams (
  id INTEGER PRIMARY KEY, resource INTEGER NOT NULL, namespace TEXT NOT NULL, selection TEXT NOT NULL,
  version TEXT NOT NULL, epoch INTEGER NOT NULL, live INTEGER NOT NULL, ever_live INTEGER NOT NULL,
  pipeline TEXT NOT NULL, identity TEXT NOT NULL, at INTEGER, served INTEGER NOT NULL,
  UNIQUE (resource, namespace, selection));
CREATE TABLE objects (
  id INTEGER PRIMARY KEY, resource INTEGER NOT NULL, uid TEXT NOT NULL, namespace INTEGER NOT NULL, name TEXT NOT NULL,
  owner TEXT NOT NULL, created INTEGER NOT NULL, UNIQUE (resource, uid));
CREATE INDEX objects_place ON objects (resource, namespace, name, created);
CREATE INDEX objects_owner ON objects (namespace, owner) WHERE owner <> '';
CREATE TABLE live (
  object INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version, max_version, last INTEGER NOT NULL, chain INTEGER NOT NULL,
  sum INTEGER, content BLOB NOT NULL);
CREATE INDEX live_stream ON live (stream);
CREATE TABLE changes (
  seq INTEGER PRIMARY KEY, object INTEGER, kind INTEGER NOT NULL, namespace INTEGER NOT NULL, op INTEGER NOT NULL,
  quiet INTEGER NOT NULL, routine INTEGER NOT NULL, severity INTEGER NOT NULL, version, time INTEGER NOT NULL, lag INTEGER NOT NULL, since INTEGER,
  manager INTEGER, owner TEXT, epoch INTEGER, form INTEGER);
CREATE INDEX changes_object ON changes (object);
CREATE INDEX changes_severe ON changes (seq, namespace, severity) WHERE severity >= 2;
CREATE INDEX changes_plain ON changes (seq, namespace) WHERE NOT routine AND NOT quiet;
CREATE INDEX changes_deleted ON changes (seq, namespace) WHERE op = 4;
CREATE TABLE contents (seq INTEGER PRIMARY KEY, before BLOB, after BLOB);
CREATE TABLE stories (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, object INTEGER NOT NULL, "of" INTEGER NOT NULL, kind INTEGER NOT NULL,
  cause INTEGER NOT NULL, manager INTEGER, begin INTEGER NOT NULL, unknown INTEGER NOT NULL, end INTEGER,
  first INTEGER NOT NULL, last INTEGER NOT NULL, reached INTEGER NOT NULL, changes INTEGER NOT NULL, worst INTEGER NOT NULL,
  moved INTEGER NOT NULL, "all" INTEGER NOT NULL, parent TEXT, via TEXT, facts TEXT NOT NULL);
CREATE INDEX stories_object ON stories (object);
CREATE INDEX stories_moved ON stories (moved, "all");
CREATE INDEX stories_parent ON stories (parent) WHERE parent IS NOT NULL;
CREATE INDEX stories_via ON stories (via) WHERE via IS NOT NULL;
CREATE TABLE states (
  story INTEGER NOT NULL, seq INTEGER NOT NULL, n INTEGER NOT NULL, word INTEGER NOT NULL, at INTEGER NOT NULL, since INTEGER,
  severity INTEGER NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (story, seq, n)) WITHOUT ROWID;
CREATE INDEX states_seq ON states (seq);
CREATE TABLE gaps (
  seq INTEGER PRIMARY KEY, "from" TEXT NOT NULL, "to" TEXT NOT NULL, reason TEXT NOT NULL);
CREATE INDEX gaps_versions ON gaps ("from", "to");
CREATE TABLE blocks (
  first INTEGER PRIMARY KEY, size INTEGER NOT NULL, listed INTEGER NOT NULL, oldest INTEGER NOT NULL, newest INTEGER NOT NULL,
  seen_oldest INTEGER NOT NULL, seen_newest INTEGER NOT NULL, reached INTEGER NOT NULL, kinds BLOB NOT NULL, sum BLOB NOT NULL);
CREATE TABLE block_ids (first INTEGER PRIMARY KEY, ids BLOB NOT NULL);
CREATE TABLE block_counts (first INTEGER PRIMARY KEY, counts BLOB NOT NULL);
CREATE TABLE rules (seq INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, at INTEGER);
CREATE TABLE sinks (name TEXT PRIMARY KEY, cursor INTEGER, paused INTEGER NOT NULL, lost INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE dead (
  id INTEGER PRIMARY KEY, sink TEXT NOT NULL, seq INTEGER NOT NULL, change TEXT NOT NULL,
  reason TEXT NOT NULL, attempts INTEGER NOT NULL, at INTEGER, body BLOB, UNIQUE (sink, seq));
`

// prepareFile sets what must be set before the first table of an empty file, and the journal mode. Of a file that is not
// fresh, it checks that it is a journal of this format.
func (db *db) prepareFile(fresh bool) error {
	tables, err := db.integer("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	if !fresh && tables == 0 {
		return &FormatError{db.path, "the file has no tables: it may be a copy without its log (-wal); tattler journal backup makes complete ones"}
	}
	if fresh {
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
	if fresh { // SQLite removes the log of an empty file
		return makeFiles(db.path)
	}
	return db.checkFormat()
}

// checkFormat returns an error unless the file is a journal of this format with checksums.
func (db *db) checkFormat() error {
	app, err := db.integer("PRAGMA application_id")
	if err != nil {
		return err
	}
	version, err := db.integer("PRAGMA user_version")
	if err != nil {
		return err
	}
	switch {
	case app != applicationID:
		return notJournal(db.path)
	case version > format:
		return &FormatError{db.path, fmt.Sprintf("the journal has format %d, which a newer tattler made; this one reads format %d: upgrade tattler", version, format)}
	case version < format:
		return &FormatError{db.path, fmt.Sprintf("the journal has format %d, which an unreleased tattler made; this one reads format %d and cannot convert it: move the file away with its -wal and -shm, and tattler run starts a new journal", version, format)}
	}
	if sums, err := db.integer("PRAGMA checksum_verification"); err != nil || sums != 1 {
		return orElse(err, &DamagedError{db.path, "header", fmt.Errorf("page checksums are off")})
	}
	return nil
}

// orElse returns err, or other if err is nil. Closing or rolling back after a failure often repeats the failure.
func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
