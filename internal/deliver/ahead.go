package deliver

import (
	"context"
	"iter"
)

// ahead reads a store in consecutive batches: items read beyond one batch are kept for the next. The zero value
// reads nothing.
type ahead struct {
	at   int64 // everything up to it was yielded
	pull func() (Item, error, bool)
	stop func()
}

// from makes next continue after a sequence number.
func (a *ahead) from(ctx context.Context, s Store, seq int64) {
	if a.pull != nil && a.at == seq {
		return
	}
	a.close()
	a.at = seq
	a.pull, a.stop = iter.Pull2(s.Read(ctx, seq))
}

// next returns the next item; false at the end, or after an error.
func (a *ahead) next() (item Item, ok bool, err error) {
	item, err, ok = a.pull()
	if !ok || err != nil {
		a.close()
	} else {
		a.at = item.Seq
	}
	return item, ok, err
}

// close drops the items that were read.
func (a *ahead) close() {
	if a.stop != nil {
		a.stop()
	}
	*a = ahead{}
}
