package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	root := flag.String("root", "..", "the product's module")
	exceptions := flag.String("exceptions", "audit/exceptions.json", "dated exceptions")
	flag.Parse()
	ok, err := audit(os.Stdout, *root, *exceptions, time.Now())
	if err != nil {
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// audit runs every check and tells whether all of them passed.
func audit(w io.Writer, root, exceptions string, now time.Time) (bool, error) {
	except, err := loadExceptions(exceptions)
	if err != nil {
		return false, err
	}
	db, err := database()
	if err != nil {
		return false, err
	}
	found, err := scan(root, db)
	if err != nil {
		return false, err
	}
	ok := judge(w, found, except, now)
	licensed, err := licences(w, root)
	return ok && licensed, err
}
