package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want SCHEMA PACKAGE OUTPUT, got %d arguments", len(args))
	}
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	out, err := Generate(raw, args[1])
	if err != nil {
		return fmt.Errorf("generate from %s: %w", args[0], err)
	}
	if err := os.WriteFile(args[2], out, 0o644); err != nil {
		return fmt.Errorf("write the types: %w", err)
	}
	return nil
}
