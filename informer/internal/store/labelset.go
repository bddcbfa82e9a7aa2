package store

import (
	"encoding/binary"
	"maps"
	"slices"
	"unsafe"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// LabelSet is an object's encoded labels: a kind, then each key and value with its length, in the order of the keys.
// Empty means that the labels are unknown.
type LabelSet string

const (
	labelsKnown = 1
	// UnreadableLabels marks an object whose bytes cannot be read.
	UnreadableLabels LabelSet = "\x02"
)

// LabelsOf reads an object's labels from its bytes. The result does not refer to them. LabelsOf reuses buf and
// returns it, possibly grown.
func LabelsOf(f wire.Format, raw, buf []byte) (LabelSet, []byte) {
	buf = append(buf[:0], labelsKnown)
	last, sorted := 0, true // last is where the last key begins
	err := wire.ReadLabels(f, raw, func(key, value []byte) bool {
		if last > 0 && sorted {
			before, _ := cutText(textOf(buf[last:]))
			sorted = before < textOf(key)
		}
		last = len(buf)
		buf = appendText(appendText(buf, key), value)
		return true
	})
	switch {
	case err != nil:
		return UnreadableLabels, buf
	case !sorted:
		buf = sortLabels(buf)
	}
	return LabelSet(buf), buf
}

// Map returns the labels. Ok is false if they are unknown.
func (l LabelSet) Map() (m map[string]string, ok bool) {
	if l == "" || l == UnreadableLabels {
		return nil, false
	}
	m = map[string]string{}
	l.each(func(key, value string) { m[key] = value })
	return m, true
}

// sortLabels sorts labels by key. If a key occurs twice, the last value wins, as in the decoders.
func sortLabels(b []byte) []byte {
	m, _ := LabelSet(b).Map()
	b = append(b[:0], labelsKnown)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b = appendText(appendText(b, []byte(key)), []byte(m[key]))
	}
	return b
}

// textOf returns a string that shares the bytes; it is valid until they change.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func appendText(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// each calls f with every label, in the order of the keys.
func (l LabelSet) each(f func(key, value string)) {
	for rest := string(l[1:]); rest != ""; {
		var key, value string
		key, rest = cutText(rest)
		value, rest = cutText(rest)
		f(key, value)
	}
}

// cutText splits off a text written by appendText.
func cutText(s string) (text, rest string) {
	n, shift, i := 0, 0, 0
	for ; s[i] >= 0x80; i++ {
		n |= int(s[i]&0x7f) << shift
		shift += 7
	}
	n |= int(s[i]) << shift
	return s[i+1 : i+1+n], s[i+1+n:]
}
