package reflector

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A paged list is watched from its first page's version. Later pages may be newer; the watch repeats what they had,
// and the store drops it.

// badList is a response that has the form of a list but cannot be one.
type badList string

func (e badList) Error() string { return "read list: " + string(e) }

const (
	errNoVersion badList = "the list has no version, although the server's lists have one"
	errLoop      badList = "the server repeats its continue token"
)

// list reads a list, page by page. Its version is the first page's, as in client-go's pager: a later page may
// be of a later version, and what happened in between to objects of earlier pages arrives only by the watch.
// The sink recognizes the watch's repetitions of later pages.
func (r *Reflector) list(ctx context.Context, trust Trust) Input {
	release, err := r.admit(ctx)
	if err != nil {
		return classify(err)
	}
	defer release()
	known := r.asking(trust)
	err = r.pages(ctx, trust, known)
	if known != "" && doubtful(err) {
		r.latest = true
		err = r.pages(ctx, trust, "")
	}
	if err != nil {
		return classify(err)
	}
	return Input{Event: Listed}
}

// pages reads the pages of a list that is not older than a version, which may be empty.
func (r *Reflector) pages(ctx context.Context, trust Trust, known string) (err error) {
	r.begin(trust)
	t := r.start(Note{Kind: NotedListBegan})
	defer func() { r.finish(t, NotedListEnded, err) }()
	limit := strconv.Itoa(pageSize)
	if r.m.Unpaged {
		limit = ""
	}
	version := ""
	for next := ""; ; {
		meta, err := r.page(ctx, r.query(append(match(known), "limit", limit, "continue", next)...), t, known, r.item)
		switch {
		case err != nil:
		case meta.ResourceVersion == "" && r.versioned: // a proxy may have sent an empty response
			err = errNoVersion
		case meta.Continue != "" && meta.Continue == next:
			err = errLoop
		default:
			r.saw(meta.ResourceVersion)
			err = r.Sink.Page(meta.ResourceVersion)
		}
		if err != nil {
			return err
		}
		if version == "" {
			version = meta.ResourceVersion
		}
		if known, next = "", meta.Continue; next == "" { // a token has its version
			r.live(version)
			return nil
		}
	}
}

// asking returns the version that a list must have: see notOlderThan. A list while the history is uncertain, and those that
// follow until one is complete, have the newest.
func (r *Reflector) asking(trust Trust) string {
	r.latest = r.latest || trust != Trusted
	return r.notOlderThan()
}

// live ends a list.
func (r *Reflector) live(version string) {
	r.latest = false
	r.Sink.Live(version)
}

// begin announces a list.
func (r *Reflector) begin(trust Trust) {
	r.versioned = r.versioned || r.Sink.Version() != ""
	if trust == Outdated {
		r.seen = ""
	}
	r.Sink.Begin(trust)
}

func (r *Reflector) item(o wire.Object, err error) error {
	r.saw(o.ResourceVersion)
	if err != nil {
		r.unreadable(err)
		r.Sink.Unreadable(o.Meta, err)
		return nil
	}
	return r.Sink.Item(o)
}

func (r *Reflector) unreadable(err error) { r.note(Note{Kind: NotedUnreadable, Err: err}) }

// page reads one page of the stream's list, which must not be older than known, if that is not empty. If its version shows that
// it is, or another history, page does not read its objects.
func (r *Reflector) page(ctx context.Context, q url.Values, t *tally, known string, item func(wire.Object, error) error) (wire.ListMeta, error) {
	open := func(ctx context.Context, watch bool, q url.Values) (io.ReadCloser, wire.Format, error) {
		body, format, err := r.Open(ctx, watch, q)
		if err == nil {
			r.accepted()
			t.Format = format
		}
		return body, format, err
	}
	begin := func(meta wire.ListMeta) error {
		switch {
		case wire.Older(meta.ResourceVersion, known):
			return errOlder
		case t.Objects == 0 && wire.Older(meta.ResourceVersion, r.Sink.Version()):
			return ErrReplaced
		}
		return nil
	}
	meta, err := readPage(ctx, open, q, t, begin, item)
	if err == nil && wire.Older(meta.ResourceVersion, known) { // custom resources have their version at the end
		err = errOlder
	}
	return meta, err
}

// accepted ends an earlier failure at the first response to a list. A response to a probe would prove less.
func (r *Reflector) accepted() {
	if r.m.Err != nil && r.m.State == Listing {
		r.input(Input{Event: Accepted})
	}
}

// progress extends a deadline with every read.
type progress struct {
	io.Reader
	timer *time.Timer
}

func (p progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.timer.Reset(answerTimeout)
	return n, err
}
