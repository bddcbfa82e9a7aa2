package informer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// indexStatus describes an index.
type indexStatus struct {
	Name   string
	Failed uint64
	Err    error
}

// The JSON that WriteStatus writes.
type (
	sourceDump struct {
		Resource  string         `json:"resource"`
		Selection selectionDump  `json:"selection,omitzero"`
		Format    string         `json:"format"`
		Hot       int64          `json:"hotBytes"`
		Parts     int64          `json:"sharedPartsBytes"`
		Dicts     int            `json:"dictionaries"`
		DictBytes int64          `json:"dictionaryBytes"`
		Labels    int64          `json:"labelIndexBytes,omitempty"`
		Streams   []streamDump   `json:"streams"`
		Consumers []consumerDump `json:"consumers,omitempty"`
		Indexes   []indexDump    `json:"indexes,omitempty"`
	}
	selectionDump struct {
		Labels string `json:"labels,omitempty"`
		Fields string `json:"fields,omitempty"`
	}
	streamDump struct {
		Namespace    string    `json:"namespace,omitempty"`
		State        string    `json:"state"`
		Synced       bool      `json:"synced"`
		Error        string    `json:"error,omitempty"`
		Since        time.Time `json:"since"`
		Attempts     int       `json:"attempts,omitempty"`
		LastCurrent  time.Time `json:"lastCurrent,omitzero"`
		Objects      int       `json:"objects"`
		Version      string    `json:"version,omitempty"`
		Epoch        int64     `json:"epoch"`
		Past         uint64    `json:"past,omitempty"`
		Repeated     uint64    `json:"repeated,omitempty"`
		Unreadable   uint64    `json:"unreadable,omitempty"`
		Transform    uint64    `json:"transformErrors,omitempty"`
		DecodeErrors uint64    `json:"decodeErrors,omitempty"`
		LossyDecodes uint64    `json:"lossyDecodes,omitempty"`
		Mutations    uint64    `json:"mutations,omitempty"`
		Audits       uint64    `json:"audits,omitempty"`
		Checkpoint   string    `json:"checkpoint,omitempty"`
	}
	consumerDump struct {
		Name string `json:"name"`
		Mode string `json:"mode"`
		Lag  Lag    `json:"lag"`
	}
	indexDump struct {
		Name   string `json:"name"`
		State  string `json:"state"`
		Failed uint64 `json:"failed,omitempty"`
	}
)

// WriteStatus writes the state of every source, stream, subscriber and index of the cluster as one JSON document, for
// people and for debugging endpoints; fields may be added. It contains no object's content, and names of objects only
// where an error quotes them.
func (c *Cluster) WriteStatus(w io.Writer) error {
	all := struct {
		Server  string       `json:"server"`
		Sources []sourceDump `json:"sources"`
	}{Sources: []sourceDump{}}
	_, u := c.client.HTTP()
	all.Server = u.Host
	for _, s := range c.open() {
		all.Sources = append(all.Sources, s.dump())
	}
	slices.SortStableFunc(all.Sources, func(a, b sourceDump) int { return cmp.Compare(a.Resource, b.Resource) })
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

func (s *Source) dump() sourceDump {
	dicts := s.router.Stats()
	d := sourceDump{
		Resource:  s.gvr.GroupResource().String() + " " + s.gvr.Version,
		Selection: selectionDump{s.opts.Selection.Labels, s.opts.Selection.Fields},
		Format:    s.format().String(),
		Hot:       s.hot.Bytes(),
		Parts:     s.parts.Stats().Bytes,
		Dicts:     dicts.Dictionaries,
		DictBytes: dicts.Bytes,
	}
	for _, st := range s.streams {
		d.Streams = append(d.Streams, st.dump())
		d.Labels += st.store.LabelBytes()
	}
	for _, c := range s.consuming() {
		d.Consumers = append(d.Consumers, consumerDump{c.name, c.mode(), c.lag()})
	}
	for _, ix := range s.indexes() {
		if ix == nil {
			continue
		}
		is := ix.status()
		state := "ready"
		if is.Err != nil {
			state = is.Err.Error()
		}
		d.Indexes = append(d.Indexes, indexDump{is.Name, state, is.Failed})
	}
	return d
}

func (s *stream) dump() streamDump {
	st := s.Status()
	d := streamDump{
		Namespace: st.Stream.Namespace, State: st.State.String(), Synced: st.Synced, Since: st.Since,
		Attempts: st.Attempts, LastCurrent: st.LastCurrent, Objects: st.Objects, Version: st.Version,
		Epoch: st.Epoch,
		Past:  st.Dropped.Past, Repeated: st.Dropped.Repeated, Unreadable: st.Dropped.Unreadable,
		Transform: st.Dropped.Transform, DecodeErrors: st.DecodeErrors, LossyDecodes: st.LossyDecodes,
		Mutations: st.Mutations, Audits: st.Audits,
	}
	if st.Err != nil {
		d.Error = st.Err.Error()
	}
	if st.Checkpoint != nil {
		d.Checkpoint = st.Checkpoint.Error()
	}
	return d
}
