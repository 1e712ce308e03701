package client

import (
	"bytes"
	"encoding/json"
	"errors"
)

// view is what a provider is given of an input schema.
type view struct {
	schema  json.RawMessage
	renamed map[string]string
	rules   string // what could not be said in the schema
}

func providerView(raw json.RawMessage) (view, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return view{schema: json.RawMessage(`{"type":"object","properties":{}}`)}, nil
	}
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return view{}, errors.New("its input schema is not an object")
	}
	if t, ok := m["type"]; ok && t != "object" {
		return view{}, errors.New("its input schema is not the schema of an object")
	}
	return view{schema: raw}, nil
}
