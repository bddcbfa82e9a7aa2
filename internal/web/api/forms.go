package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
)

// The lossless forms below /api/v1/raw/, for programs that read a served journal as they would read a file. They are
// documented for completeness; programs of users read changes.

// Kind is a resource type as it was watched.
type Kind struct {
	Group      string `json:"group" doc:"API group; empty for the core group"`
	Version    string `json:"version"`
	Resource   string `json:"resource" doc:"plural, such as deployments"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
	Cluster    string `json:"cluster,omitempty" doc:"the cluster that serves it, if not the one that the journal is named after"`
}

// Entry is a change as the journal has it, without its objects.
type Entry struct {
	Seq             int64          `json:"seq" doc:"place in the journal"`
	ID              string         `json:"id" doc:"id of the event"`
	Op              event.Op       `json:"op"`
	Kind            Kind           `json:"kind"`
	Namespace       string         `json:"namespace,omitempty"`
	Name            string         `json:"name,omitempty"`
	UID             string         `json:"uid,omitempty"`
	ResourceVersion string         `json:"resourceVersion,omitempty"`
	Time            time.Time      `json:"time" doc:"when it happened"`
	At              time.Time      `json:"at" doc:"when the daemon saw it"`
	Since           time.Time      `json:"since,omitzero" doc:"set if it happened between since and at"`
	Net             bool           `json:"net,omitempty"`
	Manager         string         `json:"manager,omitempty"`
	Owner           *event.Owner   `json:"owner,omitempty"`
	Quiet           bool           `json:"quiet,omitempty"`
	Routine         bool           `json:"routine,omitempty" doc:"a story tells it"`
	Severity        event.Severity `json:"severity" doc:"failure, warning, recovery or change"`
	Gap             *event.GapInfo `json:"gap,omitempty"`
	Absence         *event.Absence `json:"absence,omitempty"`
	Epoch           int64          `json:"epoch,omitempty"`
	Form            uint64         `json:"form,string,omitempty"`
}

// EntryOf returns the form of an entry.
func EntryOf(e *journal.Entry) *Entry {
	if e == nil {
		return nil
	}
	return &Entry{
		Seq: e.Seq, ID: e.ID, Op: e.Op, Kind: Kind(e.Kind), Namespace: e.Namespace, Name: e.Name, UID: e.UID,
		ResourceVersion: e.ResourceVersion, Time: e.Time, At: e.At, Since: e.Since, Net: e.Net, Manager: e.Manager, Owner: e.Owner,
		Quiet: e.Quiet, Routine: e.Routine, Severity: e.Severity, Gap: e.Gap, Absence: e.Absence, Epoch: e.Epoch, Form: e.Form,
	}
}

// Journal returns the entry, which reads its objects from c.
func (e *Entry) Journal(c journal.Contents) *journal.Entry {
	if e == nil {
		return nil
	}
	out := &journal.Entry{Seq: e.Seq, ID: e.ID, Meta: journal.Meta{
		Op: e.Op, Kind: journal.Kind(e.Kind), Namespace: e.Namespace, Name: e.Name, UID: e.UID,
		ResourceVersion: e.ResourceVersion, Time: e.Time, At: e.At, Since: e.Since, Net: e.Net, Manager: e.Manager, Owner: e.Owner,
		Quiet: e.Quiet, Routine: e.Routine, Severity: e.Severity, Gap: e.Gap, Absence: e.Absence, Epoch: e.Epoch, Form: e.Form,
	}}
	out.ReadFrom(c)
	return out
}

// Rows is a page of entries.
type Rows struct {
	Entries []*Entry `json:"entries"`
	// Next is where the next page begins: its after or before. 0: this was the last.
	Next int64 `json:"next,omitempty" doc:"after or before of the next page; absent on the last"`
}

// Contents are the objects of some entries. Entries that were not reached for their size are left out.
type Contents struct {
	Contents []Content `json:"contents"`
}

// Content is what was before and after a change.
type Content struct {
	Seq    int64  `json:"seq"`
	Before Text   `json:"before,omitempty"`
	After  Text   `json:"after,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// State is an object as it was at a time.
type State struct {
	Kind      Kind      `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       string    `json:"uid,omitempty"`
	Presence  uint8     `json:"presence" doc:"0: unknown, 1: absent, 2: present"`
	Object    Text      `json:"object,omitempty"`
	Error     *Error    `json:"error,omitempty" doc:"why the object cannot be read"`
	Last      *Entry    `json:"last,omitempty" doc:"the change that led to this state"`
	Next      *Entry    `json:"next,omitempty" doc:"a change that may have happened by then already"`
	From      time.Time `json:"from,omitzero" doc:"when it was first seen, where the state before is unknown"`
}

// StateOf returns the form of a state.
func StateOf(s *journal.State) State {
	return State{
		Kind: Kind(s.Kind), Namespace: s.Namespace, Name: s.Name, UID: s.UID, Presence: uint8(s.Presence), Object: s.JSON,
		Error: errorOf(s.Err), Last: EntryOf(s.Last), Next: EntryOf(s.Next), From: s.From,
	}
}

// Journal returns the state, whose entries read their objects from c.
func (s *State) Journal(c journal.Contents) journal.State {
	return journal.State{
		Kind: journal.Kind(s.Kind), Namespace: s.Namespace, Name: s.Name, UID: s.UID, Presence: journal.Presence(s.Presence), JSON: s.Object,
		Err: s.Error.Journal(), Last: s.Last.Journal(c), Next: s.Next.Journal(c), From: s.From,
	}
}

// Step is a change in the history of an object, with its objects.
type Step struct {
	Entry  *Entry `json:"entry"`
	Before Text   `json:"before,omitempty"`
	After  Text   `json:"after,omitempty"`
	Purged bool   `json:"purged,omitempty"`
}

// Line is a line of a stream: one of its fields. A stream without a line with end was cut off.
type Line struct {
	State   *State    `json:"state,omitempty"`
	Between *[2]State `json:"between,omitempty" doc:"the states at both ends"`
	Step    *Step     `json:"step,omitempty"`
	// Story is a story.Tree.
	Story json.RawMessage `json:"story,omitempty" doc:"a story, as the commands of this version read it"`
	Error *Error          `json:"error,omitempty"`
	End   bool            `json:"end,omitempty"`
}

// The reasons of errors, for programs.
const (
	ReasonNotFound  = "notFound"
	ReasonAmbiguous = "ambiguous"
	ReasonPurged    = "purged"
	ReasonDamaged   = "damaged"
	ReasonBusy      = "busy"
)

// Error is what an answer with an error says.
type Error struct {
	Error  string   `json:"error" doc:"what failed, and what to do"`
	Reason string   `json:"reason,omitempty" doc:"notFound, ambiguous, purged, damaged or busy; others may follow"`
	IDs    []string `json:"ids,omitempty" doc:"some of the changes with an ambiguous id"`
}

// errorOf returns the form of an error about the content of the journal. It names no files of the server.
func errorOf(err error) *Error {
	var several *journal.AmbiguousError
	var damaged *journal.DamagedError
	var content *history.ContentError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, journal.ErrNotFound):
		return &Error{Error: "there is no such change", Reason: ReasonNotFound}
	case errors.Is(err, journal.ErrPurged):
		return &Error{Error: journal.ErrPurged.Error(), Reason: ReasonPurged}
	case errors.As(err, &several):
		return &Error{Error: several.Error(), Reason: ReasonAmbiguous, IDs: several.IDs}
	case errors.As(err, &damaged):
		return &Error{Error: fmt.Sprintf("%s: %v", damaged.What, damaged.Err), Reason: ReasonDamaged}
	case errors.As(err, &content):
		return &Error{Error: content.Error(), Reason: ReasonDamaged}
	}
	return nil
}

// Journal returns the error that a file would give.
func (e *Error) Journal() error {
	if e == nil {
		return nil
	}
	switch e.Reason {
	case ReasonNotFound:
		return journal.ErrNotFound
	case ReasonPurged:
		return journal.ErrPurged
	case ReasonAmbiguous:
		return &journal.AmbiguousError{IDs: e.IDs}
	case ReasonDamaged:
		what, why, _ := strings.Cut(e.Error, ": ")
		return &journal.DamagedError{Path: "of the daemon", What: what, Err: errors.New(why)}
	}
	return errors.New(e.Error)
}

// Info describes the journal.
type Info struct {
	Cluster       string    `json:"cluster" doc:"name in the ids of changes"`
	Clusters      []string  `json:"clusters,omitempty" doc:"names of the recorded clusters, if there are several"`
	Last          int64     `json:"last" doc:"newest sequence number"`
	RecordedUntil time.Time `json:"recordedUntil,omitzero" doc:"up to when a daemon recorded"`
	Recording     bool      `json:"recording" doc:"whether a daemon records now"`
}

// Kinds are the recorded kinds.
type Kinds struct {
	Kinds []Kind `json:"kinds"`
}

// ShortNames are the kinds' short names.
type ShortNames struct {
	ShortNames map[string][]string `json:"shortNames" doc:"by group-resource, such as deployments.apps"`
}

// Names are names of objects.
type Names struct {
	Names []string `json:"names"`
}

// Schema is a kind's merge-key schema for a range of changes.
type Schema struct {
	Schema []byte `json:"schema,omitempty" doc:"as stored, in base64; absent if there is none"`
	From   int64  `json:"from,omitempty" doc:"the first change that it is for"`
	UpTo   int64  `json:"upTo" doc:"the last one; the newest change of the journal if the schema is the newest"`
}
