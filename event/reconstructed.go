package event

import (
	"encoding/json"
	"net/url"
	"time"
)

// ReconstructedType is the CloudEvents type of a Reconstructed. No change has it.
const ReconstructedType = "dev.tattler.reconstructed.v1"

// reconstructedPrefix begins the ids of reconstructed events: ids of changes have no hyphen.
const reconstructedPrefix = "reconstructed-"

// Fact is what a reconstructed event states.
type Fact string

// The facts. created: the object was created. written: the last time that a manager set a value. rollout: the template of
// a workload changed. release: a Helm release got a revision or a status. condition: conditions got their present status.
// event: Kubernetes reported an Event. terminated: a container ended. restarted: a container started again. finished: a
// Job completed. deleting: the deletion of the object was requested.
const (
	FactCreated    Fact = "created"
	FactWritten    Fact = "written"
	FactRollout    Fact = "rollout"
	FactRelease    Fact = "release"
	FactCondition  Fact = "condition"
	FactEvent      Fact = "event"
	FactTerminated Fact = "terminated"
	FactRestarted  Fact = "restarted"
	FactFinished   Fact = "finished"
	FactDeleting   Fact = "deleting"
)

// Reconstructed is an event of the past that nobody watched, inferred from what the cluster still records. Only `watch
// --since` and `log` without a journal print such events; sinks never receive them. Their type is
// dev.tattler.reconstructed.v1; their envelope has the same attributes as that of a change.
type Reconstructed struct {
	// SpecVersion is the version of CloudEvents.
	SpecVersion string `json:"specversion" enum:"1.0"`
	// Type is dev.tattler.reconstructed.v1.
	Type string `json:"type"`
	// Source is /clusters/NAME, with the name escaped as a path segment.
	Source string `json:"source"`
	// ID consists of "reconstructed-" and 26 characters, each from a to z or from 2 to 7. It never equals the id of a change.
	ID string `json:"id"`
	// Subject is the object's path on the API server.
	Subject string `json:"subject"`
	// Time is when the fact happened, by the clock of the server or of the program that reported it, usually in whole
	// seconds. If data.after is set, `time` is only the end of the interval in which the fact happened.
	Time time.Time `json:"time"`
	// PartitionKey is the object's UID.
	PartitionKey string `json:"partitionkey,omitempty"`
	// DataContentType is the media type of data.
	DataContentType string `json:"datacontenttype" enum:"application/json"`
	// Data states what is known.
	Data Reconstruction `json:"data"`
}

// Reconstruction states a fact about the past, and the field that proves it. If an optional field is absent, its value
// is unknown or does not apply.
type Reconstruction struct {
	// Reconstructed is always true.
	Reconstructed bool `json:"reconstructed"`
	// Fact is what happened.
	Fact Fact `json:"fact"`
	// Resource names the object.
	Resource Resource `json:"resource"`
	// Evidence is the field from which the fact and its time follow.
	Evidence string `json:"evidence"`
	// After is the beginning of the interval in which the fact happened; absent if the time is known.
	After *time.Time `json:"after,omitempty"`
	// Manager is the field manager that wrote the value; "?" or absent if it is unknown. For a creation, it is known
	// only if managedFields names one manager (not counting entries for the status), and that manager has not written
	// since. For an Event, it is the component that reported the Event.
	Manager string `json:"manager,omitempty"`
	// Operation is Apply or Update.
	Operation string `json:"operation,omitempty"`
	// Subresource is the subresource written through, such as status or scale.
	Subresource string `json:"subresource,omitempty"`
	// Owns are the fields that the manager owns, with their present values. The manager's last write set some of these
	// fields, or fields that other managers have set since.
	Owns []OwnedField `json:"owns,omitempty"`
	// Changes are the differences between the templates of two revisions. Hidden values are not compared.
	Changes []Change `json:"changes,omitempty"`
	// More counts the fields or changes that were left out because there are too many.
	More int64 `json:"more,omitempty"`
	// Revision is the new revision of a rollout or a Helm release.
	Revision string `json:"revision,omitempty"`
	// Previous is the previous revision; absent if nothing of that revision is left to compare with.
	Previous string `json:"previous,omitempty"`
	// Release is the name of a Helm release.
	Release string `json:"release,omitempty"`
	// Conditions are the object's conditions that changed at that time.
	Conditions []ConditionFact `json:"conditions,omitempty"`
	// Container names a container of the pod.
	Container string `json:"container,omitempty"`
	// ExitCode is the exit code of a container that ended (the fact terminated); else absent.
	ExitCode *int64 `json:"exitCode,omitempty"`
	// Restarts counts the restarts of the container so far.
	Restarts int64 `json:"restarts,omitempty"`
	// Began is when the finished Job or the terminated container began, or when an Event was first reported.
	Began *time.Time `json:"began,omitempty"`
	// Status is the status of a Helm release, or the type of an Event.
	Status string `json:"status,omitempty"`
	// Reason is the reason of an Event or of a container's end.
	Reason string `json:"reason,omitempty"`
	// Message is the message of an Event.
	Message string `json:"message,omitempty"`
	// Count is how often an Event was reported.
	Count int64 `json:"count,omitempty"`
	// About is the object of an Event, as kind/name.
	About string `json:"about,omitempty"`
	// Severity is failure, warning, recovery or change.
	Severity Severity `json:"severity"`
}

// OwnedField is a field that a manager owns.
type OwnedField struct {
	// Path is in the grammar of docs/paths.md.
	Path string `json:"path"`
	// Value is the field's present value; absent if it is too long.
	Value any `json:"value,omitempty"`
}

// ConditionFact is a condition of an object.
type ConditionFact struct {
	// Type is the condition's type.
	Type string `json:"type"`
	// Status is its present status.
	Status string `json:"status"`
	// Reason is its present reason.
	Reason string `json:"reason,omitempty"`
}

// NewReconstructed returns the event of a reconstruction in the named cluster. It is determined by its arguments. The
// event shares d's slices.
func NewReconstructed(cluster string, at time.Time, d Reconstruction) Reconstructed {
	d.Reconstructed = true
	if d.Severity == "" {
		d.Severity = Normal
	}
	e := Reconstructed{
		SpecVersion:     "1.0",
		Type:            ReconstructedType,
		Source:          "/clusters/" + url.PathEscape(cluster),
		Subject:         Subject(d.Resource),
		Time:            at,
		PartitionKey:    d.Resource.UID,
		DataContentType: "application/json",
		Data:            d,
	}
	e.ID = reconstructedID(e)
	return e
}

// reconstructedID hashes what the event says, except the object's present version: the same evidence, read twice, has one
// id.
func reconstructedID(e Reconstructed) string {
	e.Data.Resource.ResourceVersion = ""
	text, _ := json.Marshal(e) // it holds only JSON values
	return reconstructedPrefix + hash(string(text))
}
