package main

import (
	"fmt"
	"os"
	"strings"

	"holdfast/internal/keys"
)

// keySources says where the key of each provider comes from, and never what it is.
func (d *diagnosis) keySources() {
	kept := secretsOf(d.Home).keys
	for _, p := range keys.Providers() {
		variable := keys.Variables[p]
		if strings.TrimSpace(os.Getenv(variable)) != "" {
			d.add("keys", levelOK, fmt.Sprintf("The key of %s comes from the variable %s.", p, variable), "")
			continue
		}
		key, where, err := kept.Get(p)
		switch {
		case err != nil:
			d.add("keys", levelPerson, "The key of "+p+" cannot be read: "+line(err.Error(), 300), "holdfast setup --provider "+p)
		case key == "":
		case where == keys.InKeyring:
			d.add("keys", levelOK, fmt.Sprintf("The key of %s comes from the system's keyring.", p), "")
		default:
			d.add("keys", levelOK, fmt.Sprintf("The key of %s comes from the private file %s.", p, keys.Path(d.Home)), "")
		}
	}
}
