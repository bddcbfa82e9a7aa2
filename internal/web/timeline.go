package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
)

type timelinePage struct {
	head
	form
	list
	Histogram *histogram
	Swim      swim
	// Narrow says that a filter is in use.
	Narrow bool
	// Live is the URL of new entries; empty if the page does not show the newest ones.
	Live string
	// Newer is the URL of the newest entries, if this page does not show them.
	Newer string
	// Narrowed is set if only some namespaces are shown.
	Narrowed *narrowing
}

// timeline serves the start page.
func (p *Page) timeline(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	f, at, err := p.request(r.Context(), in)
	if err != nil {
		return err
	}
	if url := f.fixed("/"); url != "" && at.before == 0 {
		http.Redirect(w, r, url, http.StatusFound)
		return nil
	}
	page := timelinePage{head: p.head(r, "Timeline")}
	page.Section = "timeline"
	if page.Narrowed, err = p.narrow(r.Context(), f); err != nil {
		return err
	}
	p.narrowings.keep(r.Context(), f)
	page.Narrow = f.Narrowed() || !f.Query.Since.IsZero() || !f.Query.Until.IsZero()
	if page.form, err = p.form(r.Context(), f); err != nil {
		return err
	}
	if page.list, err = p.list(r.Context(), f, at); err != nil {
		return err
	}
	if page.Histogram, err = p.histogram(r.Context(), f); err != nil {
		return err
	}
	page.Histogram.Form = page.form
	if page.Swim, err = p.lanes(r.Context(), f, page.Histogram); err != nil {
		return err
	}
	page.Share = f.with("/", "since", machine(page.Histogram.From), "until", machine(page.Histogram.To))
	switch {
	case at.before != 0:
		page.Newer = f.with("/")
	case f.Query.Until.IsZero():
		page.Live = f.with("/live", "after", strconv.FormatInt(page.Last, 10))
	}
	return p.render(w, http.StatusOK, "timeline.html", page)
}

// request reads the parameters of the timeline.
func (p *Page) request(ctx context.Context, in url.Values) (f *filter, at place, err error) {
	if f, err = p.filter(ctx, in); err != nil {
		return nil, at, err
	}
	if text := in.Get("before"); text != "" {
		if at.before, err = strconv.ParseInt(text, 10, 64); err != nil || at.before < 1 {
			return nil, at, mistake("before: %q is not the number of a change", text)
		}
	}
	if text := in.Get("shown"); text != "" {
		if at.shown, err = decodeNumbers("shown", text); err != nil {
			return nil, at, err
		}
	}
	return f, at, nil
}

// older serves the entries before a change, as a part of the timeline.
func (p *Page) older(w http.ResponseWriter, r *http.Request) error {
	f, at, err := p.request(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	l, err := p.list(r.Context(), f, at)
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "list", l)
}

type unfoldPage struct {
	head
	Entries []entry
	// More is the URL of the rest.
	More string
	Left int
}

// unfoldSize is how many changes are unfolded at once.
const unfoldSize = 50

// unfold serves the changes of an entry, each on a line; those of a single change are its diff.
func (p *Page) unfold(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	f, _, err := p.request(r.Context(), in)
	if err != nil {
		return err
	}
	seqs, err := decodeNumbers("changes", in.Get("changes"))
	if err != nil {
		return err
	}
	if len(seqs) == 1 {
		return p.unfoldOne(w, r, seqs[0])
	}
	page := unfoldPage{head: p.head(r, "Changes")}
	if len(seqs) > unfoldSize {
		page.More, page.Left = f.with("/unfold", "changes", encodeNumbers(seqs[unfoldSize:])), len(seqs)-unfoldSize
		seqs = seqs[:unfoldSize]
	}
	flat := *f
	flat.flat = true
	err = p.each(r.Context(), seqs, func(e *journal.Entry, c change.Change, known error) error {
		page.Entries = append(page.Entries, p.single(&flat, e, c, known))
		return nil
	})
	if err != nil {
		return err
	}
	name := "unfold.html"
	if fragment(r) {
		name = "unfolded"
	}
	return p.render(w, http.StatusOK, name, page)
}

// unfoldOne serves the diff of a change.
func (p *Page) unfoldOne(w http.ResponseWriter, r *http.Request, seq int64) error {
	found := false
	err := p.each(r.Context(), []int64{seq}, func(e *journal.Entry, c change.Change, known error) error {
		found = true
		if !fragment(r) {
			http.Redirect(w, r, "/changes/"+e.ID, http.StatusSeeOther)
			return nil
		}
		d := p.detail(r.Context(), e, c, known)
		if err := d.show("", p.past.source.Cluster(), false); err != nil {
			return err
		}
		return p.render(w, http.StatusOK, "detail", d)
	})
	if err == nil && !found {
		return journal.ErrNotFound
	}
	return err
}
