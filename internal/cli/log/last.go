package log

import (
	"context"
	"fmt"
)

// lastChanges shows the last changes, one line for each.
func (t *lister) lastChanges(ctx context.Context) error {
	seqs, err := t.newest(ctx, t.o.Limit+1)
	if err != nil || len(seqs) == 0 {
		return err
	}
	more := len(seqs) > t.o.Limit
	t.noteLimit(more, "change")
	if more {
		seqs = seqs[1:]
	}
	return t.play(ctx, seqs)
}

// noteLimit says, before the first line, that the limit leaves something out.
func (t *lister) noteLimit(more bool, what string) {
	if !more {
		return
	}
	if t.o.Limit > 1 {
		what = fmt.Sprintf("%d %ss", t.o.Limit, what)
	}
	t.limited("only the last " + what + "; earlier ones are left out (--limit 0 shows all)")
}

// limited says what the limit leaves out, on stderr and on the page.
func (t *lister) limited(text string) {
	t.limits = append(t.limits, text)
	fmt.Fprintln(t.o.IO.Err, text)
}
