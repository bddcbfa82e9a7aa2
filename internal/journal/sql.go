package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// db is a connection with its prepared statements. It is not safe for concurrent use.
type db struct {
	c     *sqlite3.Conn
	path  string
	stmts map[string]*sqlite3.Stmt
	// looked counts the objects and the changes that queries have read.
	looked int
}

func openDB(path, settings string) (*db, error) {
	c, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		return nil, err
	}
	db := &db{c: c, path: path, stmts: map[string]*sqlite3.Stmt{}}
	_, err = c.FileControl("main", sqlite3.FCNTL_PERSIST_WAL, true) //  otherwise the last connection to close deletes the log, and the next makes one with another mode
	if err == nil {
		err = db.script(settings)
	}
	if err != nil {
		return nil, orElse(err, db.close())
	}
	return db, nil
}

func (db *db) close() error {
	_ = db.refresh() //  close even if it fails
	var errs []error
	for _, s := range db.stmts {
		_ = s.Close() // repeats the error of its last run
	}
	errs = append(errs, db.c.Close())
	return errors.Join(errs...)
}

// refresh reads where the log ends. Without it, the checkpoint that the last connection makes on close panics in
// go-sqlite3 (up to v0.37.0) if others have written since and pages have checksums: it has no memory map to drop.
func (db *db) refresh() error { return db.c.Exec("PRAGMA schema_version") }

// script runs statements without preparing them.
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
		panic("journal: statement used while it runs: " + sql)
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
		panic(fmt.Sprintf("journal: cannot bind an argument of type %T", arg))
	}
}

// exec runs a statement that returns no rows.
func (db *db) exec(sql string, args ...any) error {
	return db.query(sql, args, func(*sqlite3.Stmt) error { return nil })
}

// errDone ends a query early.
var errDone = errors.New("done")

// query calls row for each row until it returns an error; errDone ends the query without one. Within row the same
// statement must not be used; the columns are valid only until row returns.
func (db *db) query(sql string, args []any, row func(*sqlite3.Stmt) error) error {
	s, err := db.bound(sql, args)
	if err != nil {
		return err
	}
	for s.Step() {
		if err := row(s); err != nil {
			_ = s.Reset()       // row's error is returned
			if err == errDone { //nolint:errorlint // row returns it unwrapped
				return nil
			}
			return err
		}
	}
	err = s.Err() //  Reset does not repeat the error of an interrupt
	return orElse(err, s.Reset())
}

// integer returns the first column of the first row; 0 if there are no rows.
func (db *db) integer(sql string, args ...any) (v int64, err error) {
	err = db.query(sql, args, func(s *sqlite3.Stmt) error {
		v = s.ColumnInt64(0)
		return nil
	})
	return v, err
}

// transaction runs f in a transaction: its writes are all durable, or none is kept.
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

// blob copies a column; NULL is nil.
func blob(s *sqlite3.Stmt, col int) []byte {
	if s.ColumnType(col) == sqlite3.NULL {
		return nil
	}
	return s.ColumnBlob(col, []byte{})
}
