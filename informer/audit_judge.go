package informer

import (
	"context"
	"errors"
	"io"
	"net/url"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

var (
	errUndecided = errors.New("the watch did not reach the version of the list in time")
	errUnordered = errors.New("the server's resource versions have no order")
	errUnnamed   = errors.New("the list has an object without a name")
)

// judge waits until the watch has passed the version of the list, and looks at the doubtful objects again:
// ErrMissed if one of them still is not what the server has.
func (a *audit) judge(ctx context.Context) error {
	if len(a.doubts) == 0 {
		return nil
	}
	if _, ordered := wire.CompareVersions(a.version, a.store.Version()); !ordered {
		return errUnordered
	}
	for began := time.Now(); wire.Older(a.store.Version(), a.version); {
		switch {
		case a.superseded():
			return nil
		case time.Since(began) > auditPatience:
			return errUndecided
		case !pause(ctx, time.Second):
			return ctx.Err()
		}
	}
	for _, d := range a.doubts {
		missed, err := a.missed(ctx, d)
		switch {
		case a.superseded():
			return nil
		case err != nil:
			return err
		case missed:
			return reflector.ErrMissed
		}
	}
	return nil
}

// missed reports whether the stream has missed what happened to an object, now that the watch has passed
// the list's version.
func (a *audit) missed(ctx context.Context, d doubtful) (bool, error) {
	v := a.store.Get(d.key)
	same := v != nil && v.UID() == d.uid
	switch {
	case d.listed && a.store.Unread(d.key):
		return false, a.reread(ctx, d)
	case d.listed && a.store.Refused(d.key):
		return false, nil
	case !d.listed:
		return same && v.RV() == d.rv, nil // it was gone by then, and a UID does not come back
	case same:
		return v.RV() != d.rv && !wire.Older(a.version, v.RV()), nil
	}
	// It was there by then, and is not stored: if it is still there it was there all the time.
	uid, err := a.uid(ctx, d.key)
	return uid == d.uid, err
}

// uid asks the server for the UID of an object of the stream's selection; empty: there is none.
func (a *audit) uid(ctx context.Context, k store.Key) (uid string, err error) {
	err = a.get(ctx, k, request.Want{Metadata: true}, func(o wire.Object, err error) error {
		uid = o.UID
		return err
	})
	return uid, err
}

// reread reads an object that the watch could not read, now that the watch has passed the list's version: if
// the object still has the version that the list showed, no other was missed.
func (a *audit) reread(ctx context.Context, d doubtful) error {
	want := request.Want{Protobuf: a.source.wants() == Protobuf, Metadata: a.source.opts.MetadataOnly}
	err := a.get(ctx, d.key, want, func(o wire.Object, err error) error {
		if err == nil && o.UID == d.uid && o.ResourceVersion == d.rv {
			a.stage(d.key, o, a.sum(o))
		}
		return nil // an object that cannot be read here either stays as it is
	})
	a.commit()
	return err
}

// get reads one object of the stream's selection.
func (a *audit) get(ctx context.Context, k store.Key, want request.Want, each func(wire.Object, error) error) error {
	q := a.query()
	name := "metadata.name=" + k.Name
	if f := q.Get("fieldSelector"); f != "" {
		name += "," + f
	}
	q.Set("fieldSelector", name)
	path := request.Path(a.source.served(), k.Namespace, "")
	open := func(ctx context.Context, _ bool, q url.Values) (io.ReadCloser, wire.Format, error) {
		return a.source.cluster.client.Open(ctx, path, q, want)
	}
	_, _, err := reflector.ReadList(ctx, open, q, each)
	return err
}
