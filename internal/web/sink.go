package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// lettersPerPage is how many dead letters a page lists.
const lettersPerPage = 50

type sinkPage struct {
	head
	Sink sinkRow
	// Idle says why no daemon answers; empty if one does.
	Idle string
	// May says that the viewer may give orders, and that a daemon takes them.
	May bool
	// Done is what the order before this page did; nil without one.
	Done    *done
	Letters []letterRow
	// From says that the list does not begin with the first letter; First and Next are the URLs of other parts.
	From        bool
	First, Next string
}

// letterRow is a dead letter in the list.
type letterRow struct {
	sinkadmin.Letter
	// Hidden says that the viewer may not see the change, which has no name here then.
	Hidden bool
	// URL is the page of the change; empty if it is hidden or no longer kept.
	URL string
	// SendURL and DropURL ask for confirmation.
	SendURL, DropURL string
}

func sinkURL(name string) string { return "/status/sink?" + url.Values{"name": {name}}.Encode() }

// orderURL returns the page that asks to confirm an order. values are further parameters.
func orderURL(do sinkadmin.Verb, sink string, values ...string) string {
	query := url.Values{"do": {string(do)}, "sink": {sink}}
	for i := 0; i < len(values); i += 2 {
		query.Set(values[i], values[i+1])
	}
	return "/status/order?" + query.Encode()
}

// OrderURL returns the page that asks to confirm an order.
func (r sinkRow) OrderURL(do sinkadmin.Verb) string { return orderURL(do, r.Name) }

// SkipURL returns the page that asks to confirm that the change that blocks the sink is skipped.
func (r sinkRow) SkipURL() string { return orderURL(sinkadmin.Skip, r.Name, "id", r.Stuck.ID) }

// sink serves the page of a sink, with its dead letters. It needs the right auth.SeeStatus.
func (p *Page) sink(w http.ResponseWriter, r *http.Request) error {
	ctx, query := r.Context(), r.URL.Query()
	s, err := p.state(ctx)
	if err != nil {
		return err
	}
	found, former, err := s.Find(query.Get("name"))
	if err != nil {
		return &orderError{code: http.StatusNotFound, text: sentence(err)}
	}
	page := sinkPage{head: p.head(r, "Sink "+found.Name)}
	page.Section = "status"
	if s.Idle != nil {
		page.Idle = sentence(s.Idle)
	} else if page.May, err = auth.From(ctx).MayDo(ctx, auth.ManageSinks); err != nil {
		return err
	}
	if page.Sink, err = p.sinkRow(ctx, *found, former); err != nil {
		return err
	}
	page.Done = p.results.get(query.Get("done"), auth.From(ctx).String())
	return p.letters(ctx, w, query, &page)
}

// letters adds a part of the sink's dead letters and sends the page.
func (p *Page) letters(ctx context.Context, w http.ResponseWriter, query url.Values, page *sinkPage) error {
	after := int64(0)
	if text := query.Get("after"); text != "" {
		var err error
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return mistake("after=%s is not a sequence number", text)
		}
	}
	name := page.Sink.Name
	all, err := p.o.Console.Letters(ctx, name, after, lettersPerPage+1)
	if err != nil {
		return err
	}
	if page.From = after > 0; page.From {
		page.First = sinkURL(name) + "#letters"
	}
	if len(all) > lettersPerPage {
		all = all[:lettersPerPage]
		page.Next = sinkURL(name) + fmt.Sprintf("&after=%d#letters", all[len(all)-1].Seq)
	}
	for _, l := range all {
		row, err := p.letterRow(ctx, name, l)
		if err != nil {
			return err
		}
		page.Letters = append(page.Letters, row)
	}
	return p.render(w, http.StatusOK, "sink.html", page)
}

// letterRow describes a dead letter as the viewer may see it.
func (p *Page) letterRow(ctx context.Context, sink string, l sinkadmin.Letter) (letterRow, error) {
	row := letterRow{Letter: l, DropURL: orderURL(sinkadmin.Drop, sink, "id", l.ID)}
	if !l.Kept {
		return row, nil
	}
	row.SendURL = orderURL(sinkadmin.Send, sink, "id", l.ID)
	row.Hidden = true
	for e, err := range p.past.rows(ctx, sinkadmin.One(l.Seq)) {
		if err != nil {
			return row, err
		}
		row.Hidden, row.URL = false, "/changes/"+e.ID
	}
	if row.Hidden {
		row.Letter = sinkadmin.Letter{ID: l.ID, Seq: l.Seq, Kept: true, Reason: l.Reason, Attempts: l.Attempts, Since: l.Since}
	}
	return row, nil
}

// What describes the change.
func (r letterRow) What() string {
	switch {
	case r.Hidden:
		return "a change that you may not see"
	case !r.Kept:
		return "the journal no longer has the change"
	}
	what := r.Op + " " + r.Resource
	if r.Name != "" {
		what += " " + r.Name
	}
	if r.Namespace != "" {
		what += " in " + r.Namespace
	}
	return what
}
