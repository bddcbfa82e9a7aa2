package deliver

import (
	"context"
	"iter"
)

// ahead reads a store for one batch after the other: what the store has read beyond a batch is there for the
// next one. The zero value reads nothing.
type ahead struct {
	at   int64 // all up to it was yielded
	pull func() (Item, error, bool)
	stop func()
}

// from has next go on after a sequence number.
func (a *ahead) from(ctx context.Context, s Store, seq int64) {
	if a.pull != nil && a.at == seq {
		return
	}
	a.close()
	a.at = seq
	a.pull, a.stop = iter.Pull2(s.Read(ctx, seq))
}

// next returns the next item; false where there is no more, or after an error.
func (a *ahead) next() (item Item, ok bool, err error) {
	item, err, ok = a.pull()
	if !ok || err != nil {
		a.close()
	} else {
		a.at = item.Seq
	}
	return item, ok, err
}

// close lets go of what was read.
func (a *ahead) close() {
	if a.stop != nil {
		a.stop()
	}
	*a = ahead{}
}
