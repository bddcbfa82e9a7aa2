package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Report is the result of Verify.
type Report struct {
	// Stream is the name of the file's stream; Fingerprint and Identity are from the Options of its writer.
	Stream, Fingerprint, Identity string
	// Created is the time at which the file was begun, Saved the time of its last transaction.
	Created, Saved time.Time
	// Head is the stream's position.
	Head store.Head
	// Objects and Dictionaries count those in use; Records and Transactions count all readable ones.
	Objects, Dictionaries, Records, Transactions int
	// Bytes is the file's size. Garbage is the part replaced by later records. Torn is the part at the end that
	// belongs to no complete transaction: a crash left it, or it is being written.
	Bytes, Garbage, Torn int64
}

// Verify reads a file as Load does and unpacks every object. It needs no lock: while a writer runs, it reports
// the last transaction it finds. The error is a *DamagedError if Load would refuse the file.
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
	f, err := openRegular(root, filepath.Base(path), os.O_RDONLY)
	if err != nil {
		return Report{}, err
	}
	l, size, err := readFile(f)
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
