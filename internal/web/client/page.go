package client

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/api"
)

// page reads the objects of entries that were read together, several at once: the more, the more of them are read.
type page struct {
	j    *Journal
	seqs []int64 // in the order in which the entries are yielded

	mu   sync.Mutex
	next int // how many to read at once; 0: one
	read map[int64]api.Content
}

// maxContents is how many objects are read at once; the server's limit.
const maxContents = 128

func newPage(j *Journal, entries ...*api.Entry) *page {
	p := &page{j: j}
	for _, e := range entries {
		if e != nil && e.Op.HasObject() {
			p.seqs = append(p.seqs, e.Seq)
		}
	}
	return p
}

// Contents implements journal.Contents.
func (p *page) Contents(ctx context.Context, e *journal.Entry) (before, after []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.read[e.Seq]
	if !ok {
		if err := p.fetch(ctx, e.Seq); err != nil {
			return nil, nil, err
		}
		if c, ok = p.read[e.Seq]; !ok {
			return nil, nil, fmt.Errorf("read change %s: the daemon left it out", e.ID)
		}
	}
	delete(p.read, e.Seq)
	return c.Before, c.After, c.Error.Journal()
}

// fetch reads the objects of an entry and of some that follow.
func (p *page) fetch(ctx context.Context, seq int64) error {
	texts := []string{strconv.FormatInt(seq, 10)}
	found := false
	for _, s := range p.seqs {
		if found && len(texts) < p.next {
			texts = append(texts, strconv.FormatInt(s, 10))
		}
		found = found || s == seq
	}
	p.next = min(max(8, 4*p.next), maxContents)
	var all api.Contents
	if err := p.j.get(ctx, "raw/contents", url.Values{"seq": {strings.Join(texts, ",")}}, &all); err != nil {
		return err
	}
	p.read = map[int64]api.Content{}
	for _, c := range all.Contents {
		p.read[c.Seq] = c
	}
	return nil
}
