package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// db is a connection with its prepared statements. It is not safe for concurrent use.
type db struct {
	c      *sqlite3.Conn
	path   string
	stmts  map[string]*sqlite3.Stmt
	format int // the file's, when it was opened: a daemon may bring it up to date beside a reader
}

func openDB(path, settings string) (*db, error) {
	c, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		return nil, err
	}
	db := &db{c: c, path: path, stmts: map[string]*sqlite3.Stmt{}}
	_, err = c.FileControl("main", sqlite3.FCNTL_PERSIST_WAL, true) // else the next one had another mode
	if err == nil {
		err = db.script(settings)
	}
	if err != nil {
		return nil, orElse(err, db.close())
	}
	return db, nil
}

func (db *db) close() error {
	_ = db.refresh() // what cannot be read is closed all the same
	var errs []error
	for _, s := range db.stmts {
		_ = s.Close() // repeats the error of its last run
	}
	errs = append(errs, db.c.Close())
	return errors.Join(errs...)
}

// refresh reads where the log ends. A checkpoint, which the last connection makes when it closes, panics in
// go-sqlite3 (up to v0.37.0) if others have written since, and if pages have checksums: there is no memory map for
// it to give up.
func (db *db) refresh() error { return db.c.Exec("PRAGMA schema_version") }

// script runs statements that are run once.
func (db *db) script(sql string) error { return db.c.Exec(sql) }

// bound returns the prepared statement with its arguments bound.
func (db *db) bound(sql string, args []any) (*sqlite3.Stmt, error) {
	s := db.stmts[sql]
	if s == nil {
		var err error
		if s, _, err = db.c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, err
		}
		db.stmts[sql] = s
	}
	if s.Busy() {
		panic("journal: a statement is used within itself: " + sql)
	}
	for i, a := range args {
		if err := bind(s, i+1, a); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func bind(s *sqlite3.Stmt, i int, arg any) error {
	switch v := arg.(type) {
	case nil:
		return s.BindNull(i)
	case int64:
		return s.BindInt64(i, v)
	case int:
		return s.BindInt64(i, int64(v))
	case bool:
		return s.BindBool(i, v)
	case string:
		return s.BindText(i, v)
	case []byte:
		if v == nil {
			return s.BindNull(i)
		}
		return s.BindBlob(i, v)
	case time.Time:
		if v.IsZero() {
			return s.BindNull(i)
		}
		return s.BindInt64(i, v.UnixMilli())
	default:
		panic(fmt.Sprintf("journal: argument of type %T", arg))
	}
}

// exec runs a statement that returns nothing.
func (db *db) exec(sql string, args ...any) error {
	return db.query(sql, args, func(*sqlite3.Stmt) error { return nil })
}

// errDone ends a query early.
var errDone = errors.New("enough")

// query calls row for each row, until one returns an error; errDone is none. Within row the same statement may not be used, and what it returns is
// valid no longer than that.
func (db *db) query(sql string, args []any, row func(*sqlite3.Stmt) error) error {
	s, err := db.bound(sql, args)
	if err != nil {
		return err
	}
	for s.Step() {
		if err := row(s); err != nil {
			_ = s.Reset()       // there is an error already
			if err == errDone { //nolint:errorlint // row returns it as it is
				return nil
			}
			return err
		}
	}
	err = s.Err() // Reset does not repeat that of an interrupt
	return orElse(err, s.Reset())
}

// integer returns the first column of the first row; 0 where there is none.
func (db *db) integer(sql string, args ...any) (v int64, err error) {
	err = db.query(sql, args, func(s *sqlite3.Stmt) error {
		v = s.ColumnInt64(0)
		return nil
	})
	return v, err
}

// transaction runs f; what it wrote counts as a whole and is durable, or not at all.
func (db *db) transaction(f func() error) error {
	if err := db.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = db.exec("COMMIT")
	}
	if err != nil && !db.c.GetAutocommit() { // some failures have rolled back already
		err = orElse(err, db.exec("ROLLBACK"))
	}
	return err
}

// snapshot runs f, which only reads, on one state of the file.
func (db *db) snapshot(f func() error) error {
	if err := db.exec("BEGIN"); err != nil {
		return err
	}
	err := f()
	if !db.c.GetAutocommit() {
		err = orElse(err, db.exec("ROLLBACK"))
	}
	return err
}

// columnTime reads a time in milliseconds; NULL is the zero time.
func columnTime(s *sqlite3.Stmt, col int) time.Time {
	if s.ColumnType(col) == sqlite3.NULL {
		return time.Time{}
	}
	return time.UnixMilli(s.ColumnInt64(col)).UTC()
}

// blob reads a column into memory that stays; NULL is nil.
func blob(s *sqlite3.Stmt, col int) []byte {
	if s.ColumnType(col) == sqlite3.NULL {
		return nil
	}
	return s.ColumnBlob(col, []byte{})
}
