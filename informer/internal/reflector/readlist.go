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

// Read describes what ReadList has read.
type Read struct {
	// First is the version of the first page, Last the newest of all pages: a later one may be of a later
	// version.
	First, Last string
	Bytes       int64 // behind decompression
}

// ReadList reads a collection page by page beside a Reflector that runs. Each gets every object, whose bytes
// are valid during the call; its error ends the list. An object that cannot be read comes with an error and
// as much metadata as is known.
func ReadList(ctx context.Context, open Opener, query url.Values, each func(wire.Object, error) error) (read Read, err error) {
	t := &tally{}
	defer func() { read.Bytes = t.Bytes }()
	query.Set("limit", strconv.Itoa(pageSize))
	for next := ""; ; {
		meta, err := readPage(ctx, open, query, t, each)
		switch {
		case err != nil:
		case meta.ResourceVersion == "":
			err = errNoVersion
		case meta.Continue != "" && meta.Continue == next:
			err = errLoop
		}
		if err != nil {
			return Read{}, err
		}
		if read.First == "" {
			read.First, read.Last = meta.ResourceVersion, meta.ResourceVersion
		}
		if wire.Older(read.Last, meta.ResourceVersion) {
			read.Last = meta.ResourceVersion
		}
		if next = meta.Continue; next == "" {
			return read, nil
		}
		query.Set("continue", next)
	}
}

func readPage(ctx context.Context, open Opener, q url.Values, t *tally, each func(wire.Object, error) error) (wire.ListMeta, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(answerTimeout, func() { cancel(errNoAnswer) })
	defer timer.Stop()
	body, format, err := open(ctx, false, q)
	if err != nil {
		return wire.ListMeta{}, cause(ctx, err)
	}
	defer func() { _ = body.Close() }()
	l := wire.NewList(format, &meter{progress{body, timer}, t})
	for {
		o, err := l.Next()
		var bad *wire.ObjectError
		switch {
		case err == nil, errors.As(err, &bad):
		case errors.Is(err, io.EOF):
			return l.Meta(), nil
		default:
			return wire.ListMeta{}, fmt.Errorf("read list: %w", cause(ctx, err))
		}
		if err := each(o, err); err != nil {
			return wire.ListMeta{}, err
		}
	}
}
