package session

// SessionID identifies one conversation.
type SessionID string

// RunID identifies one piece of accepted work; it stays the same over every attempt.
type RunID string

// AttemptID identifies one try at executing a run by one owner.
type AttemptID string

// ItemID identifies one entry of a session's history.
type ItemID string

// EffectID identifies the journal record of one tool call.
type EffectID string

// ApprovalID identifies one durable question to the user.
type ApprovalID string

// InstanceID identifies one Holdfast process.
type InstanceID string
