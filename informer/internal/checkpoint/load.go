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

// State is the state loaded from a stream's file.
type State struct {
	// Items are the objects, unordered. The slice is the caller's.
	Items []store.Item
	// Head is the stream's position. Live: the items are its state at that version. Listing: each item existed
	// at some time, and the stream must be listed again.
	Head store.Head
	// Trusted is false if another Options.Fingerprint produced the bytes: compare them by content.
	Trusted bool
	// Fingerprint and Identity are from the Options of the file's writer.
	Fingerprint, Identity string
	// Created is the time at which the file was begun, Saved the time of the state.
	Created, Saved time.Time
	// Torn is the number of bytes dropped from the end: the remains of a transaction that a crash prevented
	// from completing or from becoming durable.
	Torn int64
}

// Newest returns the object with the highest resource version. ok is false if there is no object with a
// comparable version.
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

// Dicts returns the dictionaries that the items need, each with the format of one of its objects. It is the
// input of compact.Router.Adopt.
func (s *State) Dicts() map[*compact.Dict]wire.Format {
	dicts := map[*compact.Dict]wire.Format{}
	for _, it := range s.Items {
		if _, d := it.V.Stored(); d != nil {
			dicts[d] = it.V.Format()
		}
	}
	return dicts
}

// loader applies the records of a file, transaction by transaction.
type loader struct {
	seal       seal
	header     header
	first      int64 // end of the header
	objects    map[store.Key]*compact.Version
	dicts      map[uint64]dict
	namespaces map[string]string // interned
	open       []change          // the current transaction

	last    commit
	end     int64 // end of the last commit
	records int
	commits int
}

// dict is a dictionary in the file.
type dict struct {
	*compact.Dict
	size int64 // of its record
}

// change is one change of a transaction; v is nil for a deletion.
type change struct {
	key store.Key
	v   *compact.Version
}

// load reads a file up to its last valid commit. It needs memory for the state and the changes of one
// transaction. The error is a *DamagedError if the file is readable but differs from what was written.
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
			return nil, &DamagedError{Offset: at, Reason: "no complete state"}
		}
		l.open = nil
		return l, nil
	}
}

// apply applies one intact record.
func (l *loader) apply(record []byte, at int64) error {
	kind, fields := record[0], record[1:]
	if (at == int64(prefaceSize)) != (kind == kindHeader) {
		return errors.New("the first record is not the header")
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
	return fmt.Errorf("unknown record kind %d", kind)
}

func (l *loader) dict(fields []byte) error {
	id, raw, err := readDict(fields)
	if err != nil {
		return err
	}
	if _, ok := l.dicts[id]; ok {
		return fmt.Errorf("duplicate dictionary %d", id)
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
		return fmt.Errorf("missing dictionary %d", p.dict)
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
		return fmt.Errorf("the commit says %d objects, but there are %d", c.objects, len(l.objects))
	}
	l.last = c
	l.commits++
	return nil
}

// maxKept bounds the changes of a transaction whose memory is reused.
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
