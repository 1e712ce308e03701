package store

import (
	"context"
	"database/sql"
	"os"
	"testing"
)

// A reader that stays keeps the write-ahead log from being used again, so it grows. Once the reader has gone, ordinary commits fold it in,
// begin it anew, and cut the file.
func TestLog_IsCutAfterALongReader(t *testing.T) {
	d := open(t, options(newHome(t)))
	ctx := context.Background()
	reader, err := d.readers.BeginTx(ctx, nil)
	must(t, err)
	var n int
	must(t, reader.QueryRow(`SELECT count(*) FROM blobs`).Scan(&n))
	size := func() int64 {
		info, err := os.Stat(d.home.db() + "-wal")
		must(t, err)
		return info.Size()
	}
	write := func(bytes int) {
		must(t, d.Commit(ctx, "test", func(tx *sql.Tx) error { return fillBlob(tx, bytes) }))
	}
	for range 10 {
		write(8 << 20)
	}
	if got := size(); got < logLimit {
		t.Fatalf("the log has %d bytes; the reader did not hold it", got)
	}
	must(t, reader.Rollback())
	for range 3 {
		write(1000)
	}
	if got := size(); got > logLimit {
		t.Errorf("the log still has %d bytes after the reader has gone", got)
	}
}
