package fault

// Workarounds lists what is done only because some clients would break without it; see [Without].
var Workarounds = []string{
	"answer_first",   // a session is announced by its answer before anything is said about it
	"ask_again",      // a question that nobody answers is asked again with the next prompt
	"authenticate",   // signing in succeeds at once when there is nothing to sign in to
	"bare_env",       // commands get a home when the client passed only a PATH
	"cancelled_goal", // the prompt that is open for a goal ends as cancelled when the user stops it
	"empty_arrays",   // an empty list is read as an empty object
	"load_gap",       // silence after session/load and session/resume
	"refusal_line",   // a refused command is answered in words and not as an error
	"steering",       // a prompt right after a cancel gives the goal back
}
