package store

import "sync"

// maxFew is how many deltas a queue keeps the room for; for more, it borrows it.
const maxFew = 16

// page is the room for the deltas of the batch that a consumer has, until it asks for the next one.
// The zero value is ready.
type page struct {
	few  []Delta
	many *[]Delta // nil: not borrowed
	used int      // of it, at most
}

// pages are those that are not used, each with room for a batch.
var pages sync.Pool

// deltas returns room for those of n objects: mostly one each, two of one that was replaced.
func (p *page) deltas(n int) []Delta {
	p.used = 2 * n
	switch {
	case n == 0:
		return nil
	case n < maxFew:
		if p.few == nil {
			p.few = make([]Delta, 0, maxFew)
		}
		return p.few
	}
	p.many, _ = pages.Get().(*[]Delta)
	if p.many == nil {
		many := make([]Delta, 0, maxBatch+1)
		p.many = &many
	}
	return *p.many
}

// clear lets go of the versions.
func (p *page) clear() {
	clear(p.few[:min(p.used, cap(p.few))])
	if p.many != nil {
		clear((*p.many)[:min(p.used, cap(*p.many))])
		pages.Put(p.many)
		p.many = nil
	}
	p.used = 0
}
