package informertest

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"net/http"
	"strings"
)

// gzipThreshold is the size above which an API server compresses a body for a client that accepts that.
const gzipThreshold = 128 << 10

// compression says when a body is compressed.
type compression uint8

const (
	never compression = iota
	whenLarge
	inMembers // one gzip member per flush
)

// body is a response body being sent. It breaks off in the middle when the connection is cut.
type body struct {
	*bufio.Writer
	c        *call
	compress compression
	begun    bool
	gzip     *gzip.Writer // nil: not compressed
	open     bool         // a gzip member has begun
}

// body begins a response. Nothing is sent before the first flush or a full buffer.
func (c *call) body(contentType string, compress compression) *body {
	if !acceptsGzip(c.r) {
		compress = never
	} else if c.hit(GzipMembers) != nil {
		compress = inMembers
	}
	c.w.Header().Set("Content-Type", contentType)
	b := &body{c: c, compress: compress}
	size := gzipThreshold + 1 // the first send shows whether the body is large
	if compress != whenLarge {
		size = 32 << 10
	}
	b.Writer = bufio.NewWriterSize(sender{b}, size)
	return b
}

func acceptsGzip(r *http.Request) bool {
	for t := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(t) == "gzip" {
			return true
		}
	}
	return false
}

// begin sends the header; large says whether the body is large.
func (b *body) begin(large bool) {
	if b.begun {
		return
	}
	b.begun = true
	if b.compress == inMembers || b.compress == whenLarge && large {
		b.c.w.Header().Set("Content-Encoding", "gzip")
		b.c.w.Header().Add("Vary", "Accept-Encoding")
		b.gzip, _ = gzip.NewWriterLevel(b.c.w, gzip.BestSpeed) // the level is valid
	}
	b.c.w.WriteHeader(cmp.Or(b.c.code, http.StatusOK))
}

// sender is the body below its buffer. It has no method of the buffer, which would call itself.
type sender struct{ of *body }

// Write implements io.Writer.
func (s sender) Write(p []byte) (int, error) {
	b := s.of
	b.c.s.mu.Lock()
	broken := b.c.broken()
	b.c.s.mu.Unlock()
	if broken {
		panic(http.ErrAbortHandler)
	}
	b.begin(len(p) > gzipThreshold)
	if b.gzip == nil {
		return b.c.w.Write(p)
	}
	if !b.open {
		b.gzip.Reset(b.c.w)
		b.open = true
	}
	n, err := b.gzip.Write(p)
	if err == nil && b.compress == inMembers {
		err = b.endMember()
	}
	return n, err
}

func (b *body) endMember() error {
	b.open = false
	return b.gzip.Close()
}

// push sends everything written so far.
func (b *body) push() error {
	b.begin(false)
	if err := b.Flush(); err != nil {
		return err
	}
	if f, ok := b.c.w.(http.Flusher); ok {
		f.Flush()
	}
	return nil
}

// close ends the body.
func (b *body) close() {
	if b.Flush() == nil && b.open {
		_ = b.endMember() // an error means that the client is gone
	}
	b.begin(false)
}

// abort sends everything written so far and breaks the connection.
func (b *body) abort() {
	_ = b.push() // the connection breaks anyway
	panic(http.ErrAbortHandler)
}
