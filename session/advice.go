package session

import "strings"

// advice is what a person can do about a request that failed for good, where the provider's own words seldom say it.
func (e *ModelError) advice() string {
	switch e.Kind {
	case ModelAuth:
		return "The endpoint does not accept the key for this: see to it with 'holdfast setup', in the variable that holds it, or at the provider."
	case ModelNotFound:
		return "There is no such model for this key, or the base URL is not the right one: 'holdfast models --ask' lists what is there."
	}
	return ""
}

// final is why work ends with this error.
func (e *ModelError) final() string {
	if e.advice() == "" {
		return e.Message
	}
	return strings.TrimRight(e.Message, ". ") + ". " + e.advice()
}
