package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"

	sqlite3 "holdfast/internal/sqlite"
)

const (
	applicationID = 0x486f6c64 // "Hold" in the header tells a store of ours from any other database
	minSQLite     = 3051003    // before it, two processes that write and checkpoint at once may corrupt the file
	readerCount   = 4
)

// connector opens connections that follow the one recipe (I1).
type connector struct {
	dsn    string
	driver *sqlite3.SQLiteDriver
	// strict is set once the store is known to be ours and in WAL mode; from then on a connection with anything else is a
	// surprise. Before that, opening must be able to look without changing.
	strict *atomic.Bool
}

func (c *connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

func (c *connector) Driver() driver.Driver { return c.driver }

type role struct {
	create bool   // may create the file; only for the build of a new store under another name
	reader bool   // deferred transactions, no writes
	modeOf string // a file whose mode a created database takes
}

// newPool returns a handle for path. Nothing is opened before its first use.
func newPool(path string, r role) (*sql.DB, *connector) {
	c := &connector{dsn: dsn(path, r), strict: new(atomic.Bool)}
	c.driver = &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error { return setUp(conn, c.strict.Load()) }}
	db := sql.OpenDB(c)
	n := 1
	if r.reader {
		n = readerCount
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n) // never recycled: no idle limit, no lifetime
	return db, c
}

// dsn leaves the journal mode alone: setting it would change a file before we know that it is ours.
func dsn(path string, r role) string {
	q := url.Values{
		"mode":             {"rw"},
		"_busy_timeout":    {"250"}, // longer waits are done in Go, where a context can end them
		"_synchronous":     {"FULL"},
		"_foreign_keys":    {"1"},
		"_txlock":          {"immediate"},
		"_stmt_cache_size": {"64"},
	}
	if r.create {
		q.Set("mode", "rwc")
		q.Set("modeof", r.modeOf)
	}
	if r.reader {
		q.Set("_txlock", "deferred")
		q.Set("_query_only", "1")
	}
	query := strings.ReplaceAll(q.Encode(), "+", "%20") // SQLite takes a plus for a plus
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query}).String()
}

// logLimit is how large the write-ahead log stays at most once it was folded in.
const logLimit = 64 << 20

// setUp finishes a fresh connection and reads the result back.
func setUp(conn *sqlite3.SQLiteConn, strict bool) error {
	pragmas := []string{
		"temp_store=MEMORY", // a full disk must not break a query
		"cache_size=-8000",
		fmt.Sprintf("journal_size_limit=%d", logLimit), // what the log is cut to when nobody reads
		"trusted_schema=OFF",
		"secure_delete=ON", // what is removed is overwritten
		"cell_size_check=ON",
		"mmap_size=0", // an I/O error in mapped memory kills the process
	}
	if runtime.GOOS == "darwin" {
		pragmas = append(pragmas, "fullfsync=1", "checkpoint_fullfsync=1") // a plain sync there stops at the drive's cache
	}
	if _, err := conn.Exec("PRAGMA "+strings.Join(pragmas, "; PRAGMA "), nil); err != nil {
		return fmt.Errorf("set up the connection: %w", err)
	}
	want := [][2]string{{"synchronous", "2"}, {"foreign_keys", "1"}, {"trusted_schema", "0"}}
	if strict {
		want = append(want, [2]string{"journal_mode", "wal"}, [2]string{"application_id", fmt.Sprint(applicationID)})
	}
	for _, w := range want {
		got, err := pragma(conn, w[0])
		if err != nil {
			return err
		}
		if got != w[1] {
			return &OpenError{CodeLibrary, fmt.Sprintf("The database runs with %s=%s instead of %s.", w[0], got, w[1]),
				"Install an unmodified build of Holdfast.", nil}
		}
	}
	return nil
}

// pragma reads one value through the driver, below database/sql, where a connect hook has to work.
func pragma(conn *sqlite3.SQLiteConn, name string) (string, error) {
	rows, err := conn.Query("PRAGMA "+name, nil)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = rows.Close() }()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return fmt.Sprint(row[0]), nil
}

// checkLibrary refuses a SQLite that is not the bundled, repaired one.
func checkLibrary() error {
	if text, n, _ := sqlite3.Version(); n < minSQLite {
		return &OpenError{CodeLibrary, "The linked SQLite " + text + " can corrupt a store that two processes share.",
			"Install a build of Holdfast with its bundled SQLite.", nil}
	}
	return nil
}
