package story

import (
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/health"
	"github.com/tattler-dev/tattler/internal/owners"
)

// Kind says what a story is about. See the package comment.
type Kind uint8

// The kinds of stories. The journal stores their numbers.
const (
	Start      Kind = 1
	Run        Kind = 2
	Rollout    Kind = 3
	Scale      Kind = 4
	Disruption Kind = 5
	Incident   Kind = 6
	Deletion   Kind = 7
	Status     Kind = 8
	Drain      Kind = 9
	Report     Kind = 10
)

var kindNames = map[Kind]string{
	Start: "start", Run: "run", Rollout: "rollout", Scale: "scale", Disruption: "disruption", Incident: "incident", Deletion: "deletion", Status: "status",
	Drain: "drain", Report: "report",
}

func (k Kind) String() string { return kindNames[k] }

// asked reports whether somebody asked for what the story is about, so that what follows belongs to it.
func (k Kind) asked() bool {
	switch k {
	case Disruption, Incident, Status, Report:
		return false
	}
	return true
}

// Word is a state that a story reaches.
type Word uint8

// The states of stories. The journal stores their numbers.
const (
	Began      Word = 1
	Failing    Word = 2 // something is wrong
	Moving     Word = 3 // nothing is wrong any longer, but it is not done
	Done       Word = 4 // it ended well
	Failed     Word = 5 // it ended badly
	Superseded Word = 6 // another story of the object began
	Gone       Word = 7 // the object was deleted
	Left       Word = 8 // the object left the selection: what became of it is unknown
)

var words = map[Word]string{
	Began: "began", Failing: "failing", Moving: "moving", Done: "done", Failed: "failed", Superseded: "superseded", Gone: "gone", Left: "left",
}

func (w Word) String() string { return words[w] }

// ends reports whether a state ends a story.
func (w Word) ends() bool { return w >= Done }

// Object is the object of a story.
type Object struct {
	change.Kind
	change.Names
	Namespace, Name, UID string
}

// Node identifies the object among owners.
func (o *Object) Node() owners.Node { return owners.Node{Cluster: o.Cluster, UID: o.UID} }

// Story is an episode of an object.
type Story struct {
	// ID is the same for every recorder of the cluster, unless a recorder knows the episode's beginning only as a net change.
	ID     string
	Kind   Kind
	Object Object
	// Owner is the object's controller; nil if it has none.
	Owner *event.Owner
	// Cause is the number of the change that began it, and Manager wrote that; 0 if the story began before the recording.
	Cause   int64
	Manager string
	// Begin is when it began; Unknown: it is known only that it had begun by then.
	Begin   time.Time
	Unknown bool
	// State is the last state that it reached, and Worst its highest severity. End is the time of the state that ended it, or of
	// its last change; zero while it is open.
	State State
	Worst event.Severity
	End   time.Time
	// First and Last are the numbers of its first and its last change, and Changes how many of the object's own it covers.
	First, Last int64
	Changes     int
	// Facts are what it has to say about the whole.
	Facts Facts
	// Moved is the number of its last change, or of a later one with which a part of it failed or recovered; All is the highest severity of it and its parts. They help to find stories; what counts are the parts that a reader may see.
	Moved int64
	All   event.Severity
	// Parent is the story that it is part of: one of an object above it; empty if there is none. Via is the story of a pod's node,
	// or of the deleted namespace, that explains it.
	Parent, Via string
}

// Open reports whether the story continues.
func (s *Story) Open() bool { return !s.State.Word.ends() }

// Tree is a story with those that belong to it, for a reader.
type Tree struct {
	Story
	// Parts are the stories that are part of it, directly or not, and those that it explains, in the order of their beginnings.
	Parts []Story
	// Via are the stories that explain it or its parts: of nodes, and of a namespace's deletion.
	Via []Story
	// Seq is the number of the change with which it came to where it stands; see Moved.
	Seq int64
}

// Of returns the id of the story that it belongs to: that it is part of, or for an incident the one that explains it; empty if
// there is none.
func (s *Story) Of() string {
	if s.Parent == "" && s.Kind == Incident {
		return s.Via
	}
	return s.Parent
}

// Now returns what the story says of its object: as of its last change while it is open, else as of its end.
func (s *Story) Now() Facts {
	f := s.State.Facts
	if s.Open() && s.Facts.At != nil {
		f.Word, f.Pods, f.Restarts = s.Facts.Word, s.Facts.Pods, s.Facts.Restarts
	}
	return f
}

// Latest returns when the story came to where it stands: the time of its last change while it is open, else of its end.
func (s *Story) Latest() time.Time {
	if s.Open() && s.Facts.At != nil && s.Facts.At.After(s.State.At) {
		return *s.Facts.At
	}
	return s.State.At
}

// State is a state that a story reached.
type State struct {
	Word Word
	// Seq is the number of the change that proved it.
	Seq int64
	// At is when it was reached, as the object says, or else the end of the interval in which it was; Since is then the beginning
	// of that interval, and otherwise zero.
	At, Since time.Time
	// Severity is failure or warning if something is wrong, and recovery if that has passed; else normal.
	Severity event.Severity
	Facts    Facts
}

// Facts are what a state, or a whole story, has to say, apart from words. Unset ones are unknown or do not apply.
type Facts struct {
	// Reason, Message and Container say what is wrong; in a whole story, what was wrong when it came to its highest severity.
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	Container string `json:"container,omitempty"`
	// Word is the object's state in a word, and Was the one before, if that is another one.
	Word string `json:"word,omitempty"`
	Was  string `json:"was,omitempty"`
	// Pods counts a workload's pods; From is how many it wanted before, or in a disruption had.
	Pods *health.Pods `json:"pods,omitempty"`
	From *int         `json:"from,omitempty"`
	// Ended is the kind of the story of the object that this one ended, and Next the kind of the one that ended it; 0: none.
	Ended Kind `json:"ended,omitempty"`
	Next  Kind `json:"next,omitempty"`
	// Restarts counts the restarts of a pod's containers.
	Restarts int `json:"restarts,omitempty"`
	// About is the object of a Kubernetes Event, such as pod/web-1, and Count is how often it happened.
	About string `json:"about,omitempty"`
	Count int    `json:"count,omitempty"`
	// Field is the first field of the object's state that changed.
	Field *Field `json:"field,omitempty"`
	// Node is where a pod runs; Evicted says that its deletion is an eviction.
	Node    string `json:"node,omitempty"`
	Evicted bool   `json:"evicted,omitempty"`
	// Images are the images of a new template that differ from those before.
	Images []Image `json:"images,omitempty"`
	// Template identifies a new pod template, and Before the one before. Back says that the template is one of before.
	Template string `json:"template,omitempty"`
	Before   string `json:"before,omitempty"`
	Back     bool   `json:"back,omitempty"`
	// Waits are the finalizers that a deletion waits for.
	Waits []string `json:"waits,omitempty"`
	// Since is set if a story began in an interval, and is the beginning of that.
	Since *time.Time `json:"since,omitempty"`
	// Seen says that a story began when that was seen: the object does not record it, and it may have been a moment earlier.
	Seen bool `json:"seen,omitempty"`
	// At is the time of a story's last change. In a whole story, Word, Pods and Restarts are as of then.
	At *time.Time `json:"at,omitempty"`
	// Started is when a Job that ended had started.
	Started *time.Time `json:"started,omitempty"`
	// Created is when the object that was deleted had been created.
	Created *time.Time `json:"created,omitempty"`
}

// Field is what became of a field.
type Field struct {
	// Path is the field's path, and Text what became of it as a line, without the path.
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
	// From and To are, instead of a text, the values of a field that has one value before and after. From is that of the first of
	// several changes of the field.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Image is the image of a container before and after a change.
type Image struct {
	Container string `json:"container"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
}
