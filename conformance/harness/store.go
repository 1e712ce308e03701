package harness

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the store is looked at as SQLite
)

// Rows asks the store of a home read-only, beside the processes that have it open, and returns the first column of each row as text. What it
// shows is committed; the bytes of the files may hold more.
func Rows(t testing.TB, home, query string, args ...any) (rows []string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(home, "holdfast.db")+"?mode=ro&_busy_timeout=10000")
	must(err)
	defer func() { _ = db.Close() }()
	found, err := db.Query(query, args...)
	must(err)
	defer func() { _ = found.Close() }()
	for found.Next() {
		var text sql.NullString
		must(found.Scan(&text))
		rows = append(rows, text.String)
	}
	must(found.Err())
	return rows
}

// Number is the one number that a question to the store has for an answer.
func Number(t testing.TB, home, query string, args ...any) int64 {
	t.Helper()
	rows := Rows(t, home, query, args...)
	if len(rows) != 1 {
		t.Fatalf("%s: %d rows, want one", query, len(rows))
	}
	n, err := strconv.ParseInt(rows[0], 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
