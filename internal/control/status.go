// Package control lets another process of the same user query and control a running daemon, by HTTP over a
// socket beside the journal.
package control

import (
	"strings"
	"time"
)

// Everything that shows a daemon's state reads Status, over the socket: the verb status, /metrics, /readyz and
// /healthz. /healthz fails only where a restart would help.

// Status is the state of a daemon. `tattler status -o json` prints it, and /metrics and /readyz are derived
// from it, so its counters count from the daemon's start and never decrease.
type Status struct {
	// Version is the program's version, Cluster the cluster's name in events.
	Version string    `json:"version"`
	Cluster string    `json:"cluster"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Starting is what the daemon does before it watches, such as opening the journal; empty afterwards.
	// Until then, streams, sinks and the journal's content are unknown.
	Starting string `json:"starting,omitempty"`
	// Settled reports that every kind of the start is live or was refused.
	Settled bool `json:"settled"`
	// Away is the latest failure while the API server cannot be reached; empty otherwise.
	Away      string    `json:"away,omitempty"`
	AwaySince time.Time `json:"awaySince,omitzero"`
	// MissingRights are the rights that the daemon needs and does not have, at its last review. RightsError is why that is
	// incomplete; empty otherwise.
	MissingRights []Lack `json:"missingRights,omitempty"`
	RightsError   string `json:"rightsError,omitempty"`
	// Clusters are the states of several configured clusters. Cluster is then the name of the journal, Settled is set once
	// each of them has settled or cannot be watched, Away is the failure of the first that cannot, RightsError names the
	// cluster, and UnfilledRules is empty.
	Clusters []Cluster `json:"clusters,omitempty"`
	// UnfilledRules are resources in the redaction rules that the server does not have (yet).
	UnfilledRules []string `json:"unfilledRules,omitempty"`
	Streams       []Stream `json:"streams"`
	Audits        []Audits `json:"audits,omitempty"`
	Journal       Journal  `json:"journal"`
	Sinks         []Sink   `json:"sinks"`
	// Traces is the state of the export of traces, or nil.
	Traces *Traces `json:"traces,omitempty"`
	// Orders counts the orders about sinks.
	Orders []OrderCount `json:"orders,omitempty"`
	// PageRefusals counts what the web page and the API have refused since the start; absent without a page.
	PageRefusals []PageRefusal `json:"pageRefusals,omitempty"`
	// Left are sinks that are no longer configured but still have a cursor in the journal.
	Left []string `json:"left,omitempty"`
}

// PageRefusal counts the connections and requests that the web page and the API refused for a reason.
type PageRefusal struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// Cluster is the state of one of several clusters. Its fields are as in Status.
type Cluster struct {
	Name          string    `json:"name"`
	Settled       bool      `json:"settled"`
	Away          string    `json:"away,omitempty"`
	AwaySince     time.Time `json:"awaySince,omitzero"`
	RightsError   string    `json:"rightsError,omitempty"`
	UnfilledRules []string  `json:"unfilledRules,omitempty"`
}

// Lack is a right that the daemon needs and does not have.
type Lack struct {
	// Cluster is the name of one of several clusters; empty if there is only one.
	Cluster string `json:"cluster,omitempty"`
	// Resource is for example deployments.apps. Namespace is empty for the whole cluster, Name for all objects.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Verbs are those that are missing.
	Verbs []string `json:"verbs"`
	// Without describes the loss, if the right is optional.
	Without string `json:"without,omitempty"`
}

// Text says what is missing, such as: secrets: may not list, watch in shop. With several clusters it names the cluster, such
// as: east: secrets: may not list, watch in shop.
func (l *Lack) Text() string {
	text := l.Resource
	if l.Cluster != "" {
		text = l.Cluster + ": " + text
	}
	if l.Name != "" {
		text += "/" + l.Name
	}
	text += ": may not " + strings.Join(l.Verbs, ", ")
	if l.Namespace != "" {
		text += " in " + l.Namespace
	}
	return text
}

// StreamState is what a stream is doing.
type StreamState string

// The states: Live is up to date; Listing is catching up; Waiting is between attempts, after an error;
// Forbidden lacks rights and is retried at intervals; Gone belongs to a kind that the server does not serve
// now.
const (
	Live      StreamState = "live"
	Listing   StreamState = "listing"
	Waiting   StreamState = "waiting"
	Forbidden StreamState = "forbidden"
	Gone      StreamState = "gone"
)

// StreamStates returns all of them.
func StreamStates() []StreamState { return []StreamState{Live, Listing, Waiting, Forbidden, Gone} }

// Stream is one list-and-watch.
type Stream struct {
	// Cluster is the name of one of several clusters; empty if there is only one.
	Cluster string `json:"cluster,omitempty"`
	// Resource is for example deployments.apps. Namespace is empty for the whole cluster, Selection for all
	// objects.
	Resource  string      `json:"resource"`
	Version   string      `json:"version"`
	Namespace string      `json:"namespace,omitempty"`
	Selection string      `json:"selection,omitempty"`
	State     StreamState `json:"state"`
	// Since is when it entered this state.
	Since time.Time `json:"since,omitzero"`
	// TryingSince is the time since which it has been trying to become live, across any number of lists and
	// waits; zero unless State is Listing or Waiting.
	TryingSince time.Time `json:"tryingSince,omitzero"`
	// Error is why it is not live, or last was not; ErrorAt is when it failed. See Passed.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"errorAt,omitzero"`
	Objects int       `json:"objects"`
	// ResourceVersion is the version up to which the stream has been read.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Lists, Watches and Gaps are counters.
	Lists   int64 `json:"lists"`
	Watches int64 `json:"watches"`
	Gaps    int64 `json:"gaps"`
}

// Passed reports whether Error has passed: the stream is live again.
func (s Stream) Passed() bool { return s.Error != "" && s.State == Live }

// Audits counts the audits of a kind's streams: comparisons of the known state with a list beside the watch.
type Audits struct {
	// Cluster is as in Stream.
	Cluster  string `json:"cluster,omitempty"`
	Resource string `json:"resource"`
	// Contents is set for audits that compared whole objects, as after a schema change; otherwise they compared
	// UIDs and versions.
	Contents bool `json:"contents"`
	// Passed audits found nothing that the watch had missed, Missed ones did, and Failed ones reached no
	// result.
	Passed int64 `json:"passed"`
	Missed int64 `json:"missed"`
	Failed int64 `json:"failed"`
	// Reread counts objects with a known version but another content or sum.
	Reread int64 `json:"reread"`
}

// Journal is the state of the journal.
type Journal struct {
	Path string `json:"path"`
	// Used and Free are bytes of the file, Log the size of the write-ahead log. Limit bounds Used, Age the age
	// of changes in seconds; 0 means no limit.
	Used  int64 `json:"used"`
	Free  int64 `json:"free"`
	Log   int64 `json:"log"`
	Limit int64 `json:"limit,omitempty"`
	Age   int64 `json:"ageSeconds,omitempty"`
	// States is roughly the part of Used taken by the last states of watched objects, measured every ten
	// minutes; 0 before that.
	States int64 `json:"states,omitempty"`
	// First and Last are sequence numbers, 0 if the journal is empty; Oldest and Newest are when those changes
	// were seen.
	First  int64     `json:"first"`
	Last   int64     `json:"last"`
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
	// Cut is when the newest change was seen that was removed because the journal was too big: from then on the history is
	// whole. It is zero if there is none. CutNamespace is that change's namespace, and CutCluster the name of one of several
	// clusters; both are empty if unknown.
	Cut          time.Time `json:"cut,omitzero"`
	CutNamespace string    `json:"cutNamespace,omitempty"`
	CutCluster   string    `json:"cutCluster,omitempty"`
	// Recorded counts written changes, Quiet the quiet ones among them, Duplicates those already in the
	// journal, Commits transactions.
	Recorded   int64 `json:"recorded"`
	Quiet      int64 `json:"quiet"`
	Duplicates int64 `json:"duplicates"`
	Commits    int64 `json:"commits"`
	// Removed counts changes removed by retention.
	Removed int64 `json:"removed"`
	// ClockJump is the number of seconds by which the clock is ahead of the elapsed time, or behind if
	// negative. Retention ignores the jump for ClockHold more seconds. Both are 0 while the clock is trusted.
	ClockJump int64 `json:"clockJumpSeconds,omitempty"`
	ClockHold int64 `json:"clockDoubtSeconds,omitempty"`
	// Error is why nothing can be written now; empty otherwise. Failures counts failed writes.
	Error    string    `json:"error,omitempty"`
	ErrorAt  time.Time `json:"errorAt,omitzero"`
	Failures int64     `json:"failures"`
	// ReadError is why the journal cannot be read now; empty otherwise. Values read from it are then 0: the
	// sizes and numbers above, and each sink's Behind, LagSeconds and Dead.
	ReadError string `json:"readError,omitempty"`
	// WritingSince is when the current write began, or zero. A write that does not end hangs.
	WritingSince time.Time `json:"writingSince,omitzero"`
}

// Crowded reports whether the states alone take half of the limit. The history gets the rest, at least a
// quarter of the limit.
func (j *Journal) Crowded() bool { return j.Limit > 0 && j.States >= j.Limit/2 }

// shortShare: a history that is whole for less than 1/shortShare of the age limit is short.
const shortShare = 4

// Short reports whether the size limit leaves a history that is whole for far less time than the age limit allows.
func (j *Journal) Short(now time.Time) bool {
	return j.Age > 0 && !j.Cut.IsZero() && now.Sub(j.Cut) < time.Duration(j.Age)*time.Second/shortShare
}

// Sink is the state of a sink.
type Sink struct {
	Name string `json:"name"`
	// To is the sink's description of itself, such as file changes.jsonl, without credentials. It is empty if
	// no daemon runs: only State, Cursor, Behind, LagSeconds, Dead and Lost are known then.
	To string `json:"to"`
	// State is running, retrying, paused or stopped.
	State string `json:"state"`
	// Behind is the number of sequence numbers between the sink and the journal's end, LagSeconds the age of
	// the first of them.
	Cursor     int64   `json:"cursor"`
	Behind     int64   `json:"behind"`
	LagSeconds float64 `json:"lagSeconds"`
	// Dead counts the kept dead letters; SetAside the changes set aside since the start.
	Dead      int64 `json:"dead"`
	SetAside  int64 `json:"setAside"`
	Delivered int64 `json:"delivered"`
	// Held counts changes that the sink has accepted and delivers later, such as at the end of quiet hours. The
	// cursor stays before them.
	Held     int64 `json:"held,omitempty"`
	Attempts int64 `json:"attempts"`
	Failures int64 `json:"failures"`
	// Lost counts changes that the sink will never receive, since the journal has known it: changes that
	// retention removed first, some of which its filter may exclude, and dead letters beyond the kept number.
	Lost         int64  `json:"lost"`
	FilterErrors int64  `json:"filterErrors"`
	FilterError  string `json:"filterError,omitempty"`
	// Error is why the last attempt failed, and ErrorAt when. See Passed.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"errorAt,omitzero"`
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Stuck is the change that blocks the sink, or nil.
	Stuck *Stuck `json:"stuck,omitempty"`
}

// Passed reports whether Error has passed: the sink delivers again.
func (s Sink) Passed() bool { return s.Error != "" && s.State == "running" }

// Traces is the state of the export of traces.
type Traces struct {
	// To is the receiver's address without credentials.
	To string `json:"to"`
	// Exported counts spans that the receiver took, Dropped those that it will never get, because it was away or too slow
	// or refused them; Queued are waiting, or being sent.
	Exported int64 `json:"exported"`
	Dropped  int64 `json:"dropped"`
	Queued   int   `json:"queued"`
	// Error is why nothing can be exported now; empty otherwise. ErrorAt is the time of the last error.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"errorAt,omitzero"`
}

// Stuck is the first change that a sink has not accepted, after at least one error.
type Stuck struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	// Since is the first error, Attempts the number of times it was sent.
	Since    time.Time `json:"since"`
	Attempts int       `json:"attempts"`
	// GiveUpAt is when it is set aside automatically; zero: never.
	GiveUpAt time.Time `json:"giveUpAt,omitzero"`
}
