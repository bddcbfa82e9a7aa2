package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Report is what Verify found in a file.
type Report struct {
	// Stream is the name of the stream whose file it is; Fingerprint and Identity are those of the
	// Options that it was written with.
	Stream, Fingerprint, Identity string
	// Created is when the file was begun, Saved when its last transaction was.
	Created, Saved time.Time
	// Head is where the stream stood.
	Head store.Head
	// Objects and Dictionaries are those that are in use; Records and Transactions count all that can
	// be read.
	Objects, Dictionaries, Records, Transactions int
	// Bytes is the file's size. Of these, Garbage was replaced by later records, and Torn, at the end,
	// belongs to no complete transaction: a crash has left it, or it is being written.
	Bytes, Garbage, Torn int64
}

// Verify reads a file as Load does and unpacks every object. It needs no lock: beside a running
// writer it reports the last transaction that it finds. The error is a *DamagedError where Load would
// refuse the file.
func Verify(path string) (Report, error) {
	r, err := verify(path)
	if err != nil {
		return Report{}, fmt.Errorf("verify checkpoint %s: %w", path, err)
	}
	return r, nil
}

func verify(path string) (Report, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return Report{}, err
	}
	defer root.Close()
	l, size, err := readFile(rootDisk{root}, filepath.Base(path))
	if err != nil {
		return Report{}, err
	}
	return l.report(size)
}

func (l *loader) report(size int64) (Report, error) {
	var scratch []byte
	for k, v := range l.objects {
		raw, err := v.Append(scratch[:0])
		if err != nil {
			return Report{}, &DamagedError{Offset: l.end, Reason: fmt.Sprintf("%s/%s cannot be unpacked: %v", k.Namespace, k.Name, err)}
		}
		scratch = raw
	}
	w := continued(nil, 0, l)
	torn := size - l.end
	return Report{
		Stream: l.header.stream, Fingerprint: l.header.fingerprint, Identity: l.header.identity,
		Created: l.header.created, Saved: l.last.at, Head: l.last.head,
		Objects: len(l.objects), Dictionaries: len(w.dicts), Records: l.records, Transactions: l.commits,
		Bytes: size, Garbage: w.garbage(), Torn: torn,
	}, nil
}
