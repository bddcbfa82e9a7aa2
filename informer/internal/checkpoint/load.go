package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// State is what a stream's file held.
type State struct {
	// Items are the objects, in no order. The slice is the caller's.
	Items []store.Item
	// Head is where the stream stood. Live: the items are its state at that version. Listing: each
	// is one that existed, and nothing more is known; the stream must be listed again.
	Head store.Head
	// Trusted is false where other Options.Fingerprint made the bytes: they are to be compared by
	// content.
	Trusted bool
	// Fingerprint and Identity are those of the Options that the file was written with.
	Fingerprint, Identity string
	// Created is when the file was begun, Saved when the state was.
	Created, Saved time.Time
	// Torn is how many bytes at the end were dropped: what a crash left of a transaction that was
	// not completed, or not made durable.
	Torn int64
}

// Newest returns the object with the highest resource version; false where there is none, or none
// has a version that can be compared.
func (s *State) Newest() (newest store.Item, ok bool) {
	for _, it := range s.Items {
		rv := it.V.RV()
		_, version := wire.CompareVersions(rv, rv)
		if version && (!ok || wire.Older(newest.V.RV(), rv)) {
			newest, ok = it, true
		}
	}
	return newest, ok
}

// Dicts returns the dictionaries that the items need, each with the format of some object that does:
// for compact.Router.Adopt.
func (s *State) Dicts() map[*compact.Dict]wire.Format {
	dicts := map[*compact.Dict]wire.Format{}
	for _, it := range s.Items {
		if _, d := it.V.Stored(); d != nil {
			dicts[d] = it.V.Format()
		}
	}
	return dicts
}

// loader applies the records of a file, a transaction at a time.
type loader struct {
	seal       seal
	header     header
	first      int64 // behind the header
	objects    map[store.Key]*compact.Version
	dicts      map[uint64]dict
	namespaces map[string]string // one string for each
	open       []change          // the transaction under way

	last    commit
	end     int64 // behind the last commit
	records int
	commits int
}

// dict is a dictionary in the file.
type dict struct {
	*compact.Dict
	size int64 // of its record
}

// change is one of a transaction; v is nil for a deletion.
type change struct {
	key store.Key
	v   *compact.Version
}

// load reads a file up to its last commit that counts. Beside the state, it holds the changes of one
// transaction. The error is a *DamagedError if the file can be read but is not what was written.
func load(r io.Reader, size int64) (*loader, error) {
	s, err := newScanner(r, size)
	if err != nil {
		return nil, err
	}
	l := &loader{
		seal:       s.seal,
		objects:    map[store.Key]*compact.Version{},
		dicts:      map[uint64]dict{},
		namespaces: map[string]string{},
	}
	for {
		body, at, err := s.next()
		if err == nil {
			if err := l.apply(body, at); err != nil {
				return nil, &DamagedError{Offset: at, Reason: err.Error()}
			}
			switch body[0] {
			case kindHeader:
				l.first = s.off
			case kindCommit:
				l.end = s.off
			}
			continue
		}
		if errors.Is(err, errBroken) {
			err = s.judge(at)
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case l.commits == 0:
			return nil, &DamagedError{Offset: at, Reason: "it holds no complete state"}
		}
		l.open = nil
		return l, nil
	}
}

// apply takes one record, which is one that was written.
func (l *loader) apply(record []byte, at int64) error {
	kind, fields := record[0], record[1:]
	if (at == int64(prefaceSize)) != (kind == kindHeader) {
		return errors.New("the header is not the first record")
	}
	l.records++
	switch kind {
	case kindHeader:
		var err error
		l.header, err = readHeader(fields)
		return err
	case kindDict:
		return l.dict(fields)
	case kindPut:
		return l.put(fields)
	case kindDelete:
		ns, name, err := readDelete(fields)
		l.open = append(l.open, change{key: l.key(ns, name)})
		return err
	case kindCommit:
		fields, ok := bytes.CutPrefix(record, []byte(commitMark))
		if !ok {
			return errBody
		}
		c, err := readCommit(fields)
		if err != nil {
			return err
		}
		return l.commit(c)
	}
	return fmt.Errorf("a record is of the unknown kind %d", kind)
}

func (l *loader) dict(fields []byte) error {
	id, raw, err := readDict(fields)
	if err != nil {
		return err
	}
	if _, ok := l.dicts[id]; ok {
		return fmt.Errorf("there are two dictionaries %d", id)
	}
	d, err := compact.LoadDict(raw)
	l.dicts[id] = dict{d, int64(recordHead + 1 + len(fields))}
	return err
}

func (l *loader) put(fields []byte) error {
	p, err := readPut(fields)
	if err != nil {
		return err
	}
	d, ok := l.dicts[p.dict]
	if !ok && p.dict != 0 {
		return fmt.Errorf("an object needs dictionary %d, which is missing", p.dict)
	}
	v, err := compact.Restore(p.format, string(p.uid), string(p.rv), p.sum, p.payload, d.Dict)
	if err != nil {
		return err
	}
	l.open = append(l.open, change{l.key(p.namespace, p.name), v})
	return nil
}

func (l *loader) key(namespace, name []byte) store.Key {
	ns, ok := l.namespaces[string(namespace)]
	if !ok {
		ns = string(namespace)
		l.namespaces[ns] = ns
	}
	return store.Key{Namespace: ns, Name: string(name)}
}

// commit ends the transaction.
func (l *loader) commit(c commit) error {
	if len(l.objects) == 0 && len(l.open) > maxKept {
		l.objects = make(map[store.Key]*compact.Version, len(l.open))
	}
	for _, ch := range l.open {
		if ch.v == nil {
			delete(l.objects, ch.key)
		} else {
			l.objects[ch.key] = ch.v
		}
	}
	if cap(l.open) > maxKept {
		l.open = nil
	}
	clear(l.open)
	l.open = l.open[:0]
	if len(l.objects) != c.objects {
		return fmt.Errorf("a commit of %d objects leaves %d", c.objects, len(l.objects))
	}
	l.last = c
	l.commits++
	return nil
}

// maxKept is how long a transaction's changes may be for their memory to be used again.
const maxKept = 1 << 12

func (l *loader) state(size int64) *State {
	st := &State{
		Items: make([]store.Item, 0, len(l.objects)), Head: l.last.head,
		Fingerprint: l.header.fingerprint, Identity: l.header.identity,
		Created: l.header.created, Saved: l.last.at, Torn: size - l.end,
	}
	for k, v := range l.objects {
		st.Items = append(st.Items, store.Item{Key: k, V: v})
	}
	return st
}
