package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
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
	f, before, err := p.request(r.Context(), in)
	if err != nil {
		return err
	}
	if url := f.fixed("/"); url != "" && before == 0 {
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
	if page.list, err = p.list(r.Context(), f, before); err != nil {
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
	case before != 0:
		page.Newer = f.with("/")
	case f.Query.Until.IsZero():
		page.Live = f.with("/live", "after", strconv.FormatInt(page.Last, 10))
	}
	return p.render(w, http.StatusOK, "timeline.html", page)
}

// request reads the parameters of the timeline: the filter, and the change before which a page begins; 0 without one.
func (p *Page) request(ctx context.Context, in url.Values) (f *filter, before int64, err error) {
	if f, err = p.filter(ctx, in); err == nil {
		before, err = number(in, "before")
	}
	return f, before, err
}

// number reads a parameter with the number of a change; 0 without one.
func number(in url.Values, name string) (int64, error) {
	text := in.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, mistake("%s: %q is not the number of a change", name, text)
	}
	return n, nil
}

// older serves the entries before a change, as a part of the timeline.
func (p *Page) older(w http.ResponseWriter, r *http.Request) error {
	f, before, err := p.request(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	l, err := p.list(r.Context(), f, before)
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

// unfold serves the changes that a story covers, each on a line.
func (p *Page) unfold(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	f, _, err := p.request(r.Context(), in)
	if err != nil {
		return err
	}
	after, err := number(in, "after")
	if err != nil {
		return err
	}
	s, err := p.past.source.Story(r.Context(), in.Get("story"))
	if errors.Is(err, journal.ErrNotFound) {
		return errNoStory
	}
	if err != nil {
		return err
	}
	seqs, err := p.past.builder.Covered(r.Context(), &s)
	if err != nil {
		return err
	}
	seqs = slices.DeleteFunc(seqs, func(seq int64) bool { return seq <= after })
	page := unfoldPage{head: p.head(r, "Changes")}
	flat := *f
	flat.flat = true
	if len(seqs) > unfoldSize {
		page.Left, seqs = len(seqs)-unfoldSize, seqs[:unfoldSize]
		page.More = f.with("/unfold", "story", s.ID, "after", strconv.FormatInt(seqs[unfoldSize-1], 10))
	}
	err = p.past.builder.Each(r.Context(), seqs, func(e *journal.Entry, c change.Change, damage error) error {
		n, _ := p.changeEntry(&flat, e, c, damage)
		page.Entries = append(page.Entries, n)
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
