package main

import (
	"os"
	"sync"
	"time"

	"holdfast/internal/config"
)

// found is what a process has read of a configuration, and the file as it was then.
type found struct {
	size int64
	at   time.Time
	file config.File
	err  error
}

var (
	filesMu sync.Mutex
	files   = map[string]found{}
)

// userFile is the user's configuration, read again only when the file has changed. After an error it holds nothing but its path.
func userFile(home string) (config.File, error) {
	path := config.Path(home, userHome())
	st, err := os.Stat(path)
	if err != nil { // there is none, or it says why it cannot be read
		return config.Read(path)
	}
	filesMu.Lock()
	defer filesMu.Unlock()
	r, known := files[path]
	if !known || r.size != st.Size() || !r.at.Equal(st.ModTime()) {
		r = found{size: st.Size(), at: st.ModTime()}
		r.file, r.err = config.Read(path)
		files[path] = r
	}
	return r.file, r.err
}

// settings is what the user's configuration has set. An error is of the type config.Errors; what it returns then is empty.
func settings(home string) (config.Config, error) {
	f, err := userFile(home)
	return f.Config, err
}
