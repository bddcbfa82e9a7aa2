package informer

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// List with a selector asks an index of labels: objects of a namespace with equal labels are one group, and groups
// are found by label. The first selector builds it, because it costs some 40 bytes an object, and 400 where each
// object has its own labels.

// labelChunk is how many labels are added to the index under one lock.
const labelChunk = 256

// selected returns the objects that match a label selector, and those whose labels only decoding can show.
//
// The first call starts the source's label index, so that sources without selectors do not pay for it. Labels of objects
// that arrived before are read here and added to the index.
func (s *stream) selected(namespace string, selector labels.Selector) (found, unsure []store.Item) {
	if !s.source.labelled.Swap(true) { // first, so that new objects bring their labels
		for _, st := range s.source.streams {
			st.store.IndexLabels()
		}
	}
	s.store.IndexLabels() // another reader may still be adding it
	all := s.store.Select(namespace, selector)
	found, unsure = all.Found, all.Unsure
	var read []store.Labelled
	for _, item := range all.Unknown {
		l := s.labelsOf(item.V)
		set, ok := l.Map()
		switch {
		case !ok:
			unsure = append(unsure, item)
		case selector.Matches(labels.Set(set)):
			found = append(found, item)
		}
		if read = append(read, store.Labelled{Item: item, Labels: l}); len(read) == labelChunk {
			s.store.SetLabels(read)
			read = read[:0]
		}
	}
	if len(read) > 0 {
		s.store.SetLabels(read)
	}
	return found, unsure
}

// labelsOf reads the labels of a stored version.
func (s *stream) labelsOf(v *compact.Version) store.LabelSet {
	scratch := borrow()
	defer scratch.giveBack()
	raw, err := v.Append(scratch.b[:0])
	if err != nil {
		return store.UnreadableLabels // decoding will report the error
	}
	scratch.b = raw
	return labelsIn(v.Format(), raw)
}

// labelsIn reads the labels from an object's bytes.
func labelsIn(f wire.Format, raw []byte) (l store.LabelSet) {
	scratch := borrow()
	defer scratch.giveBack()
	l, scratch.b = store.LabelsOf(f, raw, scratch.b)
	return l
}
