package session

// Code is one entry of the closed list of diagnostics: why something does not move.
type Code string

const (
	CodeNone             Code = ""
	CodeApproval         Code = "approval_pending"
	CodeUserPaused       Code = "user_paused"
	CodeUserCancelled    Code = "user_cancelled"
	CodeClientPaused     Code = "client_paused"
	CodeUserEnded        Code = "user_ended"
	CodeClosedByClient   Code = "closed_by_client"
	CodeRecoveryOff      Code = "recovery_off"
	CodeNotAttached      Code = "not_attached"
	CodeCrashLoop        Code = "crash_loop"
	CodeDirectoryMissing Code = "directory_missing"
	CodeWorkspaceChanged Code = "workspace_changed"
	CodeEnvironment      Code = "environment_differs"
	CodeModelUnavailable Code = "model_unavailable"
	CodeModelRetry       Code = "model_retry"
	CodeModelFailed      Code = "model_failed"
	CodeOtherHost        Code = "other_host"
	CodeVerifying        Code = "verifying"
	CodeUnmet            Code = "requirements_unmet"
	CodeTodoOpen         Code = "todo_open"
	CodeCommandRuns      Code = "command_runs"
	CodeNoProgress       Code = "no_progress"
	CodeBlocked          Code = "blocked_by_agent"
	CodeUnreadable       Code = "unreadable"
	CodeMalformed        Code = "malformed"
	CodeOutcomeUnknown   Code = "outcome_unknown"
	CodeOwnerLost        Code = "owner_lost"
	CodeOwnerSilent      Code = "owner_not_responding"
	CodeServerMissing    Code = "mcp_server_missing"
	CodeStalled          Code = "stalled"
	CodeSlot             Code = "waiting_for_slot"
	CodeWorktreeBusy     Code = "worktree_busy"
	CodeContextOverflow  Code = "context_overflow"
	CodeBudget           Code = "budget_used_up"
	CodeBudgetUnpriced   Code = "budget_unpriced"
)

// Diagnostic is what a code means and who can do what about it.
type Diagnostic struct {
	Sentence string
	Owner    string   // who owns the next action: "user", "agent", "holdfast"
	Allowed  []string // actions of update_goal, or plain words for a prompt
}

// Diagnostics is the closed list.
var Diagnostics = map[Code]Diagnostic{
	CodeApproval:         {"A permission question waits for your answer.", "user", []string{"answer", "pause", "end"}},
	CodeUserPaused:       {"You paused it.", "user", []string{"resume", "end"}},
	CodeClientPaused:     {"An MCP client paused it.", "user", []string{"resume", "end"}},
	CodeUserCancelled:    {"You stopped it.", "user", []string{"resume", "end"}},
	CodeUserEnded:        {"You ended it.", "user", nil},
	CodeClosedByClient:   {"The editor closed the session; it goes on when the session is opened again.", "user", []string{"open", "end"}},
	CodeRecoveryOff:      {"Its process is gone, and work that was left behind is not taken up by itself here.", "user", []string{"retry", "resume", "end"}},
	CodeNotAttached:      {"Its process is gone; it goes on when an editor opens the session.", "user", []string{"open", "retry", "resume", "end"}},
	CodeCrashLoop:        {"The process died twice in a row at this point without progress.", "user", []string{"redo", "retry", "end"}},
	CodeDirectoryMissing: {"The working directory is not there.", "user", []string{"retry", "end"}},
	CodeWorkspaceChanged: {"The working directory is no longer the one the work began in.", "user", []string{"retry", "end"}},
	CodeEnvironment:      {"This process has another model, endpoint or credential than the work began with.", "user", []string{"open", "retry", "end"}},
	CodeModelUnavailable: {"No model is configured here.", "user", []string{"retry", "end"}},
	CodeModelRetry:       {"The model endpoint failed for now; the next try is scheduled.", "holdfast", []string{"retry", "pause", "end"}},
	CodeModelFailed:      {"The model endpoint refused the request.", "user", []string{"retry", "pause", "end"}},
	CodeOtherHost:        {"The work belongs to a process on another machine.", "user", []string{"takeover"}},
	CodeVerifying:        {"An independent review of the result is running.", "agent", []string{"pause", "end"}},
	CodeUnmet:            {"The last review found requirements that are not met.", "agent", []string{"pause", "end", "verify"}},
	CodeTodoOpen:         {"The agent offered a result while items of its todo are open.", "agent", []string{"pause", "end", "verify"}},
	CodeCommandRuns:      {"It waits for a command that runs in the background; it goes on when that ends.", "holdfast", []string{"retry", "pause", "end"}},
	CodeNoProgress:       {"Several turns in a row changed nothing.", "user", []string{"retry", "revise", "end"}},
	CodeBlocked:          {"The agent reported the same obstacle several turns in a row.", "user", []string{"retry", "revise", "end"}},
	CodeOutcomeUnknown:   {"The outcome of a call is unknown; until you settle it, everything but reading asks first.", "user", []string{"settle"}},
	CodeOwnerLost:        {"The process that worked on it is gone; the next process that executes goes on with it.", "user", []string{"open", "work", "end"}},
	CodeOwnerSilent:      {"The process that executes it does not respond; it may be suspended.", "user", []string{"continue", "takeover"}},
	CodeServerMissing:    {"A tool needs an MCP server that only the editor can supply again.", "user", []string{"open", "pause", "end"}},
	CodeStalled:          {"It did nothing for too long, and a person says whether what it changed is put back first.", "user", []string{"redo", "retry", "end"}},
	CodeSlot:             {"It waits for its turn: so many runs work unattended at once. It goes on when one of them ends, or at once when an editor opens the session.", "holdfast", []string{"open", "pause", "end"}},
	CodeWorktreeBusy:     {"Another session works unattended in the same work tree; it goes on when that one is done, or at once when an editor opens the session.", "holdfast", []string{"open", "pause", "end"}},
	CodeContextOverflow:  {"The conversation does not fit what the model can read, and compacting it did not help.", "user", []string{"retry", "pause", "end"}},
	CodeBudget:           {"Its budget is used up.", "user", []string{"budget", "end"}},
	CodeBudgetUnpriced:   {"It has a budget of money, and what it costs is not known.", "user", []string{"budget", "retry", "end"}},
	CodeUnreadable:       {"A record of this session could not be read from the disk.", "user", []string{"retry", "end"}},
	CodeMalformed:        {"A record of this session is not valid.", "user", []string{"retry", "end"}},
}
