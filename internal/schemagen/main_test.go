package main

import (
	"bytes"
	"os"
	"testing"
)

func TestGenerate_CommittedOutputIsCurrent(t *testing.T) {
	schema, err := os.ReadFile("../../acp/schema/v1/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Generate(schema, "v1")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../acp/v1/types_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("acp/v1/types_gen.go is not what the schema gives; run go generate ./acp/v1")
	}
}

func TestGenerate_RefusesWhatIsNoSchema(t *testing.T) {
	if _, err := Generate([]byte("{"), "v1"); err == nil {
		t.Error("half a JSON document passes for a schema")
	}
}
