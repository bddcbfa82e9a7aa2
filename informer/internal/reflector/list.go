package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// list reads a list, page after page.
func (r *Reflector) list(ctx context.Context, newEpoch bool) (in Input) {
	release, err := r.admit(ctx)
	if err != nil {
		return classify(err)
	}
	defer release()
	r.Sink.Begin(newEpoch)
	t := r.start(Note{Kind: NotedListBegan})
	defer func() { r.finish(t, NotedListEnded, in.Err) }()
	limit := strconv.Itoa(pageSize)
	if r.m.Unpaged {
		limit = ""
	}
	for next := ""; ; {
		meta, err := r.page(ctx, r.query("limit", limit, "continue", next), t, r.item)
		if err == nil {
			err = r.Sink.Page(meta.ResourceVersion)
		}
		if err != nil {
			return classify(err)
		}
		if next = meta.Continue; next == "" {
			r.Sink.Live(meta.ResourceVersion)
			return Input{Event: Listed}
		}
	}
}

func (r *Reflector) item(o wire.Object, err error) error {
	if err != nil {
		r.unreadable(err)
		r.Sink.Unreadable(o.Meta, err)
		return nil
	}
	return r.Sink.Item(o)
}

func (r *Reflector) unreadable(err error) { r.tell(Note{Kind: NotedUnreadable, Err: err}) }

// page reads one answer to a list.
func (r *Reflector) page(ctx context.Context, q url.Values, t *tally, item func(wire.Object, error) error) (wire.ListMeta, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(answerTimeout, func() { cancel(errNoAnswer) })
	defer timer.Stop()
	body, format, err := r.Open(ctx, false, q)
	if err != nil {
		return wire.ListMeta{}, cause(ctx, err)
	}
	defer func() { _ = body.Close() }()
	r.accepted()
	t.Format = format
	l := wire.NewList(format, &meter{progress{body, timer}, t})
	for {
		o, err := l.Next()
		var bad *wire.ObjectError
		switch {
		case errors.Is(err, io.EOF):
			return l.Meta(), nil
		case err != nil && !errors.As(err, &bad):
			return wire.ListMeta{}, fmt.Errorf("read list: %w", cause(ctx, err))
		}
		t.Objects++
		if err := item(o, err); err != nil {
			return wire.ListMeta{}, err
		}
	}
}

// accepted ends an earlier failure with the first answer to a list. In the table, that to a probe
// proves less.
func (r *Reflector) accepted() {
	if r.m.Err != nil {
		r.input(Input{Event: Accepted})
	}
}

// progress puts a deadline off with every read.
type progress struct {
	io.Reader
	timer *time.Timer
}

func (p progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.timer.Reset(answerTimeout)
	return n, err
}
