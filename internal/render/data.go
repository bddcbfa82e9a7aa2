package render

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// Line is a line as data, for output that is not a terminal. Its texts are harmless for a terminal: control characters and
// marks that reorder text are written as in a Go string.
type Line struct {
	// At is when it happened; Until is set if only an interval is known, which began At.
	At, Until time.Time
	// Sign is + - ~ > < · = or !, as in the package comment. A notice or a gap (!) has only a Name, its text.
	Sign string
	// Namespace is empty for a cluster-scoped object. Name is type/name, as in deploy/web.
	Namespace, Name string
	// Cluster is the cluster's name, with Options.Clusters; else empty.
	Cluster string
	// Owned says that the object has a controller.
	Owned bool
	// Info says what happened, Manager who wrote it, Count how many changes the line covers, and Note what else is known,
	// such as when the change was seen. Each may be empty.
	Info, Manager, Count, Note string
	// Remark is what Options.Remark says about the object.
	Remark   string
	Severity event.Severity
	// Changes are the numbers (change.Change.Seq) of the covered changes, in ascending order: the newest 500 at most.
	// Changes without a number are not listed.
	Changes []int64
	// Object is what the line is about, not escaped; zero for a notice or a gap.
	Object Object
}

// Object names an object. Resource is that of its kind, such as deployments; Cluster is as in change.Kind.
type Object struct{ Group, Resource, Kind, Namespace, Name, Cluster string }

// numbers are those of the changes that a line covers.
type numbers []int64

// maxNumbers bounds the numbers of a line.
const maxNumbers = 500

// add adds the number of a change, which is 0 if it has none.
func (n *numbers) add(seqs ...int64) {
	for _, seq := range seqs {
		if seq != 0 {
			*n = append(*n, seq)
		}
	}
	if len(*n) > 2*maxNumbers {
		*n = n.newest()
	}
}

// newest returns the newest numbers, in order.
func (n numbers) newest() numbers {
	slices.Sort(n)
	return slices.Clone(n[max(len(n)-maxNumbers, 0):])
}

// emit passes a row to Options.Each.
func (t *Text) emit(r row) {
	if !t.muted {
		t.o.Each(t.lineOf(r))
	}
}

// announce passes a row to Options.Head.
func (t *Text) announce(r row) {
	if t.o.Head == nil || t.muted {
		return
	}
	_ = t.write() // the error is kept
	t.o.Head(t.lineOf(r))
}

// remark adds the remark about a row's object, and leaves out its name if the caller prints it.
func (t *Text) remark(r *row) {
	if t.o.Nameless && r.object.Name != "" && strings.HasSuffix(r.name, "/"+r.object.Name) {
		r.name, r.info = cmp.Or(r.info, signWords[r.sign]), ""
	}
	if t.o.Remark == nil || r.object == (Object{}) {
		return
	}
	r.remark = t.o.Remark(r.object)
}

// signWords describe lines without a name and a description.
var signWords = map[string]string{signCreated: "created", signDeleted: "deleted", signUpdated: "changed", signSnapshot: "existed"}

func objectOf(c change.Change) Object {
	return Object{c.Kind.Group, c.Kind.Resource, c.Kind.Kind, c.Namespace, c.Name, c.Kind.Cluster}
}

func (o *object) identity() Object {
	return Object{o.kind.Group, o.kind.Resource, o.kind.Kind, o.namespace, o.name, o.kind.Cluster}
}

func (t *Text) lineOf(r row) Line {
	line := Line{
		At: r.at, Until: r.until, Sign: r.sign, Namespace: escape(r.namespace), Name: escape(r.name), Owned: r.owned,
		Info: escape(r.info), Manager: escape(r.manager), Count: bare(r.count), Note: bare(r.note), Remark: escape(r.remark), Severity: r.severity, Object: r.object,
	}
	if t.o.Clusters {
		line.Cluster = escape(r.cluster)
	}
	if len(r.changes) > 0 {
		line.Changes = r.changes.newest()
	}
	return line
}

// bare returns a note without its parentheses.
func bare(note string) string {
	if n := len(note); n > 1 && note[0] == '(' && note[n-1] == ')' {
		note = note[1 : n-1]
	}
	return escape(note)
}

// pendingNumbers returns the numbers of the changes without a line.
func (f *fold) pendingNumbers() numbers {
	var all numbers
	all.add(f.changes...)
	all.add(f.members.changes...)
	return all
}

// EscapeHTML writes the characters of an HTML document that control or reorder text as in a Go string. Line breaks and
// tabs stay.
func EscapeHTML(doc []byte) []byte {
	if !hasControls(doc) && bytes.IndexFunc(doc, isASCIIControl) < 0 {
		return doc
	}
	out := make([]byte, 0, len(doc)+64)
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		if isControl(r, n) || isASCIIControl(r) {
			q := strconv.QuoteRune(r)
			out = append(out, q[1:len(q)-1]...)
		} else {
			out = append(out, doc[:n]...)
		}
		doc = doc[n:]
	}
	return out
}

func isASCIIControl(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' }
