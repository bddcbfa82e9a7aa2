// Package control is how another process of the same user asks a running daemon for its state and has it do
// things: HTTP over a socket beside the journal.
package control

import "time"

// Everything that shows a daemon's state reads Status, over the socket: the verb status, /metrics, /readyz and
// /healthz. /healthz fails only where a restart would help.

// Status is the state of a daemon. It is also what `tattler status -o json` prints and what /metrics and
// /readyz are made of, so its counters count since the daemon's start and never fall.
type Status struct {
	// Version is the program's; Cluster the name in events.
	Version string    `json:"version"`
	Cluster string    `json:"cluster"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Starting is what the daemon does before it watches anything, such as migrating the journal; empty afterwards.
	// Until then nothing is known of streams, sinks and what the journal holds.
	Starting string `json:"starting,omitempty"`
	// Settled says that every kind of the start is live, or known not to become so.
	Settled bool `json:"settled"`
	// Away is the latest failure while the API server cannot be reached; empty otherwise.
	Away      string    `json:"away,omitempty"`
	AwaySince time.Time `json:"awaySince,omitzero"`
	// UnfilledRules are resources that the redaction rules name and the server does not have (yet).
	UnfilledRules []string `json:"unfilledRules,omitempty"`
	Streams       []Stream `json:"streams"`
	Audits        []Audits `json:"audits,omitempty"`
	Journal       Journal  `json:"journal"`
	Sinks         []Sink   `json:"sinks"`
	// Left are sinks that are configured no more, and of which the journal keeps the place.
	Left []string `json:"left,omitempty"`
}

// StreamState is what a stream is doing.
type StreamState string

// The states. Live is up to date, Listing on its way to be; Waiting was live or may become so, and is tried
// again after an error; Forbidden is one that may not be watched and is tried now and then; Gone one whose
// kind the server does not serve (now).
const (
	Live      StreamState = "live"
	Listing   StreamState = "listing"
	Waiting   StreamState = "waiting"
	Forbidden StreamState = "forbidden"
	Gone      StreamState = "gone"
)

// StreamStates are all of them.
func StreamStates() []StreamState { return []StreamState{Live, Listing, Waiting, Forbidden, Gone} }

// Stream is one list-and-watch.
type Stream struct {
	// Resource is such as deployments.apps; Namespace is empty for the whole cluster, Selection for all
	// objects.
	Resource  string      `json:"resource"`
	Version   string      `json:"version"`
	Namespace string      `json:"namespace,omitempty"`
	Selection string      `json:"selection,omitempty"`
	State     StreamState `json:"state"`
	// Since is when it came to be in this state.
	Since time.Time `json:"since,omitzero"`
	// TryingSince is since when it tries to be live and is not, through any number of lists and waits; zero
	// where State is neither Listing nor Waiting.
	TryingSince time.Time `json:"tryingSince,omitzero"`
	// Error is why it is not live, or was not the last time.
	Error   string `json:"error,omitempty"`
	Objects int    `json:"objects"`
	// ResourceVersion is how far the stream is.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Lists, Watches and Gaps count.
	Lists   int64 `json:"lists"`
	Watches int64 `json:"watches"`
	Gaps    int64 `json:"gaps"`
}

// Audits counts the audits of a kind's streams: comparisons of what is known with a list beside the watch.
type Audits struct {
	Resource string `json:"resource"`
	// Contents is true for audits that compared whole objects, as after a schema changed; false for those that
	// compared UIDs and versions.
	Contents bool `json:"contents"`
	// Passed audits found nothing that the watch had not shown, Missed ones did, and Failed ones could not
	// decide.
	Passed int64 `json:"passed"`
	Missed int64 `json:"missed"`
	Failed int64 `json:"failed"`
	// Reread counts the objects whose content or sum was not the known one although their version was.
	Reread int64 `json:"reread"`
}

// Journal is where changes are kept.
type Journal struct {
	Path string `json:"path"`
	// Used and Free are bytes of the file, Log the size of the write-ahead log; Limit bounds Used, 0: nothing
	// does. Age bounds how old a change is, in seconds; 0: nothing does.
	Used  int64 `json:"used"`
	Free  int64 `json:"free"`
	Log   int64 `json:"log"`
	Limit int64 `json:"limit,omitempty"`
	Age   int64 `json:"ageSeconds,omitempty"`
	// States is about what the last states of the watched objects take of Used, measured every ten minutes; 0 before.
	States int64 `json:"states,omitempty"`
	// First and Last are sequence numbers, 0 where there is none; Oldest and Newest are when those were seen.
	First  int64     `json:"first"`
	Last   int64     `json:"last"`
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
	// Recorded are changes written, Quiet of them; Duplicates were in it already. Commits counts transactions.
	Recorded   int64 `json:"recorded"`
	Quiet      int64 `json:"quiet"`
	Duplicates int64 `json:"duplicates"`
	Commits    int64 `json:"commits"`
	// Removed are changes that retention removed.
	Removed int64 `json:"removed"`
	// ClockJump is how many seconds the clock is ahead of the time that has passed, or behind if negative: changes
	// are removed by age as if it had not jumped for ClockDoubt seconds more. Both are 0 while it can be trusted.
	ClockJump  int64 `json:"clockJumpSeconds,omitempty"`
	ClockDoubt int64 `json:"clockDoubtSeconds,omitempty"`
	// Error is why nothing can be written now; empty otherwise. Failures counts how often it could not.
	Error    string    `json:"error,omitempty"`
	ErrorAt  time.Time `json:"errorAt,omitzero"`
	Failures int64     `json:"failures"`
	// ReadError is why the journal cannot be read now; empty otherwise. What is read from it is not known
	// then, and 0: the sizes and places above, and of each sink Behind, LagSeconds and Dead.
	ReadError string `json:"readError,omitempty"`
	// WritingSince is when the write began that is under way; zero where none is. One that does not end
	// hangs.
	WritingSince time.Time `json:"writingSince,omitzero"`
}

// Crowded reports whether the states alone take half of the limit: the history gets what they leave, and a quarter
// of the limit at least.
func (j *Journal) Crowded() bool { return j.Limit > 0 && j.States >= j.Limit/2 }

// Sink is where changes are delivered to.
type Sink struct {
	Name string `json:"name"`
	// To is what the sink calls itself, such as file changes.jsonl. It holds no credentials. It is empty where
	// no daemon runs: only State, Cursor, Behind, LagSeconds, Dead and Lost are known then.
	To string `json:"to"`
	// State is running, retrying, paused or stopped.
	State string `json:"state"`
	// Behind is how many sequence numbers the sink is behind the journal, LagSeconds how long ago the
	// first of them was seen.
	Cursor     int64   `json:"cursor"`
	Behind     int64   `json:"behind"`
	LagSeconds float64 `json:"lagSeconds"`
	// Dead are the dead letters that are kept; Buried those since the start.
	Dead      int64 `json:"dead"`
	Buried    int64 `json:"buried"`
	Delivered int64 `json:"delivered"`
	// Held are changes that the sink has taken in, and tells later, such as at the end of quiet hours: the
	// cursor stays before them.
	Held     int64 `json:"held,omitempty"`
	Attempts int64 `json:"attempts"`
	Failures int64 `json:"failures"`
	// Lost are changes that the sink will never get, ever since the journal knows it: those that retention
	// removed before, of which its filter may have left out some, and dead letters beyond what is kept.
	Lost         int64     `json:"lost"`
	FilterErrors int64     `json:"filterErrors"`
	FilterError  string    `json:"filterError,omitempty"`
	Error        string    `json:"error,omitempty"`
	ErrorAt      time.Time `json:"errorAt,omitzero"`
	RetryAt      time.Time `json:"retryAt,omitzero"`
	// Stuck is the change that holds the sink up, if one does.
	Stuck *Stuck `json:"stuck,omitempty"`
}

// Stuck is the first change that a sink has not taken, after at least one error.
type Stuck struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	// Since is the first error, Attempts how often it was sent.
	Since    time.Time `json:"since"`
	Attempts int       `json:"attempts"`
	// GiveUpAt is when it becomes a dead letter by itself; zero: never.
	GiveUpAt time.Time `json:"giveUpAt,omitzero"`
}
