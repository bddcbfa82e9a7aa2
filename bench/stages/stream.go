package stages

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/internal/capture"
)

// streamName is the file of a watch's events: first every pod once, then the updates.
const streamName = "watch.json"

// firstVersion is the resource version before the first event.
const firstVersion = 2_000_000_000

// write writes a stream into a folder, unless it is there.
func write(dir string, pods, updates int) error {
	path := filepath.Join(dir, streamName)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	e := gen.New(1).NewEncoder(gen.JSON)
	var object []byte
	for n := range pods + updates {
		kind := "MODIFIED"
		if n < pods {
			kind = "ADDED"
		}
		object = e.Append(object[:0], n%pods, n/pods, firstVersion+uint64(n))
		fmt.Fprintf(&b, `{"type":"%s","object":{"kind":"Pod","apiVersion":"v1",%s}`+"\n", kind, object[1:])
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// item is an event on its way. Each stage reads what earlier ones have set.
type item struct {
	prev *item // the object's version before; nil for its first
	text []byte
	// raw is the object in text.
	raw []byte

	object        feed.CutObject
	sum           uint64
	redacted      []byte
	packed        feed.Version
	before, after []byte
	old, now      map[string]any
	change        capture.Version
}

// read reads the events of a stream: every pod once, and a number of updates.
func read(dir string, pods, updates int) (seeds, rest []*item, err error) {
	f, err := os.Open(filepath.Join(dir, streamName))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var all []*item
	r := bufio.NewReaderSize(f, 1<<16)
	for n := range pods + updates {
		text, err := r.ReadBytes('\n')
		if err != nil {
			return nil, nil, fmt.Errorf("read event %d: %w", n, err)
		}
		_, raw, ok := bytes.Cut(text, []byte(`,"object":`))
		if !ok {
			return nil, nil, fmt.Errorf("event %d has no object", n)
		}
		it := &item{text: text, raw: bytes.TrimSuffix(raw, []byte("}\n"))}
		if n >= pods {
			it.prev = all[n-pods]
		}
		all = append(all, it)
	}
	return all[:pods], all[pods:], nil
}

// body reads the events of some items as a watch's body.
type body struct {
	items []*item
	at    int
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	for len(b.items) > 0 && n < len(p) {
		k := copy(p[n:], b.items[0].text[b.at:])
		n, b.at = n+k, b.at+k
		if b.at == len(b.items[0].text) {
			b.items, b.at = b.items[1:], 0
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
