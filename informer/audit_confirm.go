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
	errUndecided = errors.New("the watch did not reach the list's version in time")
	errUnordered = errors.New("the server's resource versions are not ordered")
	errUnnamed   = errors.New("the list has an object without a name")
)

// confirm waits until the watch has passed the version of the list's last page, and checks the differences again. It
// returns ErrMissed if one of them persists.
func (a *audit) confirm(ctx context.Context) error {
	if len(a.differences) == 0 {
		return nil
	}
	if _, ordered := wire.CompareVersions(a.last, a.store.Version()); !ordered {
		return errUnordered
	}
	for began := time.Now(); wire.Older(a.store.Version(), a.last); {
		switch {
		case a.superseded():
			return nil
		case time.Since(began) > auditPatience:
			return errUndecided
		case !pause(ctx, time.Second):
			return ctx.Err()
		}
	}
	for _, d := range a.differences {
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

// missed reports whether the stream has missed a change of an object, now that the watch has passed the list's version.
func (a *audit) missed(ctx context.Context, d difference) (bool, error) {
	v := a.store.Get(d.key)
	same := v != nil && v.UID() == d.uid
	switch {
	case !d.listed:
		return same && v.RV() == d.rv, nil // it was deleted by then, and a UID never returns
	case a.store.Unread(d.key):
		return false, a.reread(ctx, d)
	case same && (v.RV() == d.rv || wire.Older(a.version, v.RV()) && !wire.Older(v.RV(), d.rv)):
		return false, nil
	case same && a.source.opts.Transform == nil:
		return true, nil
	}
	return a.lasts(ctx, d)
}

// lasts reports whether the server still has the object that the list had. If so, it had it all the time, in the stream's
// selection, and the watch should have delivered it; except for an object that is unreadable or that the transform
// refuses: that was counted and left a gap when the watch delivered it.
func (a *audit) lasts(ctx context.Context, d difference) (lasts bool, err error) {
	want := request.Want{Metadata: true}
	if a.source.opts.Transform != nil {
		want = a.whole()
	}
	err = a.get(ctx, d.key, want, func(o wire.Object, err error) error {
		if err == nil {
			_, err = a.transformed(o)
		}
		lasts = o.UID == d.uid && o.ResourceVersion == d.rv && err == nil
		return nil
	})
	return lasts, err
}

// reread reads an object that the watch could not read, now that the watch has passed the list's version: if the object
// still has the list's version, no other version was missed.
func (a *audit) reread(ctx context.Context, d difference) error {
	err := a.get(ctx, d.key, a.whole(), func(o wire.Object, err error) error {
		if err == nil && o.UID == d.uid && o.ResourceVersion == d.rv {
			a.stage(d.key, o, a.sum(o))
		}
		return nil // an object that is unreadable here as well stays as it is
	})
	a.commit()
	return err
}

// get reads one object, if the stream selects it.
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
	_, err := reflector.ReadList(ctx, open, q, each)
	return err
}

// whole requests objects in the stream's format.
func (a *audit) whole() request.Want {
	return request.Want{Protobuf: a.source.format() == Protobuf, Metadata: a.source.opts.MetadataOnly}
}
