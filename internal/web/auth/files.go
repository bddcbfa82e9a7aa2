package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// lookEvery is how often files are read to see whether they changed. Reading is more reliable than the times of
// files, and no goroutine has to watch them.
const lookEvery = time.Second

// reloaded is a value made from files. It is made again when a file's content changes. While the new content is
// invalid, such as a certificate whose key is not written yet, the last valid value stays.
type reloaded[T any] struct {
	files []string
	parse func(contents [][]byte) (T, error)
	log   *slog.Logger

	mu       sync.Mutex
	looked   time.Time
	contents [][]byte
	value    T
	problem  string // the logged one
}

// reload reads files for the first time.
func reload[T any](log *slog.Logger, parse func([][]byte) (T, error), files ...string) (*reloaded[T], error) {
	r := &reloaded[T]{files: files, parse: parse, log: log, looked: time.Now()}
	contents, err := r.read()
	if err == nil {
		r.value, err = parse(contents)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", strings.Join(files, " and "), err)
	}
	r.contents = contents
	return r, nil
}

func (r *reloaded[T]) read() ([][]byte, error) {
	contents := make([][]byte, len(r.files))
	for i, f := range r.files {
		var err error
		if contents[i], err = os.ReadFile(f); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

// get returns the current value.
func (r *reloaded[T]) get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.looked) >= lookEvery {
		r.looked = now
		r.look()
	}
	return r.value
}

func (r *reloaded[T]) look() {
	contents, err := r.read()
	if err == nil && slices.EqualFunc(contents, r.contents, bytes.Equal) {
		r.problem = ""
		return
	}
	var value T
	if err == nil {
		value, err = r.parse(contents)
	}
	if err != nil {
		if r.problem != err.Error() {
			r.problem = err.Error()
			r.log.Warn("cannot read changed files; their last valid content stays in use", "files", r.files, "error", err)
		}
		return
	}
	r.value, r.contents, r.problem = value, contents, ""
	r.log.Info("files reloaded", "files", r.files)
}

// pair is a serving certificate.
type pair struct {
	tls  tls.Certificate
	leaf *x509.Certificate
}

func parsePair(contents [][]byte) (*pair, error) {
	p, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, err
	}
	return &pair{p, p.Leaf}, nil
}

// bundle are trusted CAs.
type bundle struct {
	certs []*x509.Certificate
	pool  *x509.CertPool
}

func parseBundle(contents [][]byte) (*bundle, error) {
	b := &bundle{pool: x509.NewCertPool()}
	for rest := contents[0]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse certificate: %w", err)
		}
		b.certs = append(b.certs, c)
		b.pool.AddCert(c)
	}
	if len(b.certs) == 0 {
		return nil, errors.New("no PEM certificate in it")
	}
	return b, nil
}
