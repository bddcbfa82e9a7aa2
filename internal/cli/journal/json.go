package journal

import (
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
)

// Summary is the JSON of stats; sizes are in bytes.
type Summary struct {
	Path    string `json:"path"`
	Cluster string `json:"cluster"`
	Format  int    `json:"format"`
	Used    int64  `json:"usedBytes"`
	Free    int64  `json:"freeBytes"`
	Log     int64  `json:"logBytes"`

	Changes int64      `json:"changes"`
	Quiet   int64      `json:"quiet"`
	Gaps    int64      `json:"gaps"`
	Oldest  *time.Time `json:"oldest,omitempty"`
	Newest  *time.Time `json:"newest,omitempty"`
	Objects int64      `json:"objects"`
	Live    int64      `json:"live"`

	OtherRules *OtherRules `json:"otherRules,omitempty"`
	Kinds      []Kind      `json:"kinds"`
	Streams    []Stream    `json:"streams"`
	Sinks      []Sink      `json:"sinks"`
}

// OtherRules counts what was recorded under other redaction rules than the last ones.
type OtherRules struct {
	Changes    int64      `json:"changes"`
	Before     *time.Time `json:"before,omitempty"`
	Unfinished bool       `json:"purgeUnfinished"`
}

// Kind is the size of a kind.
type Kind struct {
	Cluster     string `json:"cluster,omitempty"` // empty: the one that the journal is named after
	Resource    string `json:"resource"`
	Changes     int64  `json:"changes"`
	Quiet       int64  `json:"quiet"`
	ChangesSize int64  `json:"changesBytes"`
	Live        int64  `json:"live"`
	StatesSize  int64  `json:"statesBytes"`
}

// Stream is a stream's position.
type Stream struct {
	Cluster   string     `json:"cluster,omitempty"`
	Resource  string     `json:"resource"`
	Namespace string     `json:"namespace,omitempty"`
	Selection string     `json:"selection,omitempty"`
	Version   string     `json:"version"`
	Complete  bool       `json:"complete"`
	At        *time.Time `json:"at,omitempty"`
}

// Sink is a sink's lag.
type Sink struct {
	Name   string `json:"name"`
	Behind int64  `json:"behind"`
	Dead   int    `json:"deadLetters"`
	Lost   int64  `json:"lost"` // changes that it will never get
	Paused bool   `json:"paused"`
}

func summary(s *journal.Stats) Summary {
	out := Summary{
		Path: s.Path, Cluster: s.Cluster, Format: s.Format, Used: s.Used, Free: s.Free, Log: s.Log,
		Changes: s.Changes, Quiet: s.Quiet, Gaps: s.Gaps, Oldest: known(s.Oldest), Newest: known(s.Newest),
		Objects: s.Objects, Live: s.Live, Kinds: []Kind{}, Streams: []Stream{}, Sinks: []Sink{},
	}
	if u := &s.Uncovered; u.Changes > 0 || u.Unfinished != nil {
		out.OtherRules = &OtherRules{u.Changes, known(u.Before), u.Unfinished != nil}
	}
	for _, k := range s.Kinds {
		out.Kinds = append(out.Kinds, Kind{k.Cluster, k.GroupResource, k.Changes, k.Quiet, k.ChangesSize, k.Live, k.StatesSize})
	}
	for _, st := range s.Streams {
		h := &st.Head
		out.Streams = append(out.Streams, Stream{st.Stream.Cluster, st.Stream.GroupResource, st.Stream.Namespace, st.Stream.Selection, h.Version, h.Live, known(h.At)})
	}
	for _, k := range s.Sinks {
		out.Sinks = append(out.Sinks, Sink{k.Name, k.Behind, k.Dead, k.Lost, k.Paused})
	}
	return out
}

// known returns nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
