package gen

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Format is an encoding of an object.
type Format uint8

// The formats, as in a list: a protobuf message without the envelope that names its kind, and JSON
// without apiVersion and kind.
const (
	Protobuf Format = iota
	JSON
)

// sentinel is the identity in templates. Its values occur nowhere else.
var sentinel = newSentinel()

func newSentinel() identity {
	var id identity
	fill := func(at text, format string) {
		mark := strings.ToUpper(lowercase[at : at+1])
		id.texts[at] = strings.ReplaceAll(format, "?", mark)
	}
	fill(textName, "Q?Q?Q")
	fill(textUID, "Q???????-????-????-????-???????????Q")
	fill(textToken, "Q?Z?Q")
	fill(textIP, "Q?.???.???.??Q")
	fill(textNode, "Q?"+nodeName(0)[2:])
	fill(textHostIP, "Q?"+nodeIP(0)[2:])
	fill(textZone, "Q?"+nodeZone(0)[2:])
	fill(textVersion, "Q????????Q")
	for at := textContainer; at < numTexts; at++ {
		fill(at, "Q"+strings.Repeat("?", 62)+"Q")
	}
	for m := range id.times { // in the range of real times, so that the varints have the same length
		id.times[m] = Epoch - 1_000_000 - int64(m)
	}
	return id
}

// Encoder encodes pods by filling their identity into an encoded pod of their application. It is
// safe for concurrent use.
type Encoder struct {
	g      *Generator
	format Format
	mu     sync.RWMutex
	known  map[templateKey]*template
}

// templateKey identifies pods that differ only in their identity.
type templateKey struct {
	app, place int
	state      state
}

// template is an encoded pod with the sentinel's identity, and the positions of that.
type template struct {
	bytes []byte
	holes []hole
}

// hole is the position of a text, or of a time if text is numTexts.
type hole struct {
	at     int
	text   text
	moment moment
}

// NewEncoder returns an encoder for the generator's pods.
func (g *Generator) NewEncoder(f Format) *Encoder {
	return &Encoder{g: g, format: f, known: map[templateKey]*template{}}
}

// Prepare encodes all templates, which takes seconds.
func (e *Encoder) Prepare() {
	for i, a := range e.g.apps {
		for place := range places {
			for state := range numStates {
				if state == succeeded && a.owner.Kind != "Job" {
					continue
				}
				e.template(&identity{app: i, place: place, state: state})
			}
		}
	}
}

// Size is the number of bytes that Append appends.
func (e *Encoder) Size(i, step int) int {
	id := e.g.identify(i, step)
	return len(e.template(&id).bytes)
}

// Append appends pod i after some updates by its kubelet (see PodAfter), with a resource version of
// ten digits.
func (e *Encoder) Append(dst []byte, i, step int, version uint64) []byte {
	id := e.g.identify(i, step)
	t := e.template(&id)
	id.texts[textVersion] = fmt.Sprintf("%010d", version)
	from := len(dst)
	dst = append(dst, t.bytes...)
	for _, h := range t.holes {
		at := dst[from+h.at:]
		if h.text < numTexts {
			copy(at, id.texts[h.text])
		} else {
			copy(at, e.time(id.times[h.moment]))
		}
	}
	return dst
}

// time encodes a time as in an object.
func (e *Encoder) time(seconds int64) []byte {
	if e.format == JSON {
		return time.Unix(seconds, 0).UTC().AppendFormat(nil, time.RFC3339)
	}
	return binary.AppendUvarint([]byte{1 << 3}, uint64(seconds))
}

func (e *Encoder) template(id *identity) *template {
	key := templateKey{id.app, id.place, id.state}
	e.mu.RLock()
	t := e.known[key]
	e.mu.RUnlock()
	if t != nil {
		return t
	}
	t = e.newTemplate(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known[key] = t
	return t
}

func (e *Encoder) newTemplate(of *identity) *template {
	id := sentinel
	id.app, id.place, id.state = of.app, of.place, of.state
	if e.g.apps[id.app].owner.Kind == "StatefulSet" {
		id.texts[textName] = "QAQAQAQ"
	}
	t := &template{bytes: Encode(e.format, e.g.complete(&id))}
	for at, s := range id.texts {
		t.find([]byte(s), hole{text: text(at)})
	}
	for m, s := range id.times {
		t.find(e.time(s), hole{text: numTexts, moment: moment(m)})
	}
	slices.SortFunc(t.holes, func(a, b hole) int { return a.at - b.at })
	return t
}

// find records the positions of s.
func (t *template) find(s []byte, h hole) {
	for at := 0; ; at += len(s) {
		i := bytes.Index(t.bytes[at:], s)
		if i < 0 {
			return
		}
		at += i
		h.at = at
		t.holes = append(t.holes, h)
	}
}

// Encode encodes a pod as a server does.
func Encode(f Format, pod *corev1.Pod) []byte {
	var b []byte
	var err error
	if f == JSON {
		b, err = json.Marshal(pod)
	} else {
		b, err = pod.Marshal()
	}
	if err != nil {
		panic(fmt.Sprintf("gen: encode a pod: %v", err))
	}
	return b
}
