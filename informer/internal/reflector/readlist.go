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

// Read describes the list read by ReadList.
type Read struct {
	// First is the version of the first page, Last the newest version of all pages: a later page may be of a
	// later version.
	First, Last string
	Bytes       int64 // after decompression
}

// ReadList reads a collection page by page, independently of a running Reflector. It calls each for every
// object; the object's bytes are valid during the call, and an error from each ends the list. For an unreadable
// object, each receives an error and the metadata that could be read.
func ReadList(ctx context.Context, open Opener, query url.Values, each func(wire.Object, error) error) (read Read, err error) {
	t := &tally{}
	defer func() { read.Bytes = t.Bytes }()
	query.Set("limit", strconv.Itoa(pageSize))
	for next := ""; ; {
		meta, err := readPage(ctx, open, query, t, func(wire.ListMeta) error { return nil }, each)
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

// readPage reads one page of a list and counts its objects and bytes. It calls begin before the first object,
// and fails if the server sends nothing for answerTimeout.
func readPage(
	ctx context.Context, open Opener, q url.Values, t *tally,
	begin func(wire.ListMeta) error, each func(wire.Object, error) error,
) (wire.ListMeta, error) {
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
	for first := true; ; first = false {
		o, err := l.Next()
		var bad *wire.ObjectError
		switch {
		case errors.Is(err, io.EOF):
			meta := l.Meta()
			if !isVersion(meta.ResourceVersion) {
				meta.ResourceVersion = ""
			}
			return meta, nil
		case err != nil && !errors.As(err, &bad):
			return wire.ListMeta{}, fmt.Errorf("read list: %w", cause(ctx, err))
		}
		if first {
			if err := begin(l.Meta()); err != nil {
				return wire.ListMeta{}, err
			}
		}
		t.Objects++
		if err := each(o, err); err != nil {
			return wire.ListMeta{}, err
		}
	}
}
