package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/story"
)

// The bounds of raw answers.
const (
	rawPage     = 512     // entries
	rawContents = 128     // entries whose objects one request reads
	rawBytes    = 8 << 20 // of objects, after which the rest is left out
	rawNames    = 1000    // names
	maxValues   = 10_000  // names, kinds and so on in a query
)

// query reads the parameter query: a journal.Query as JSON.
func query(r *http.Request) (q journal.Query, err error) {
	text := r.URL.Query().Get("query")
	if text == "" {
		return q, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return q, problem(http.StatusBadRequest, "query: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return q, problem(http.StatusBadRequest, "query: there is more after the first value")
	}
	return q, q.Validate(maxValues)
}

// objectQuery reads a query that may only have what selects objects, and times.
func objectQuery(r *http.Request) (journal.Query, error) {
	q, err := query(r)
	if err == nil && !reflect.DeepEqual(q, q.OfObjects()) {
		err = problem(http.StatusBadRequest, "query: what selects changes is for raw/rows; this path selects objects by Clusters, Resources, Namespaces, Without, Names, UID and Fields")
	}
	return q, err
}

func (a *api) info(r *http.Request) (any, error) {
	ctx := r.Context()
	if _, err := access.May(ctx, nil); err != nil {
		return nil, err
	}
	last, err := a.o.Source.Last(ctx)
	if err != nil {
		return nil, err
	}
	until, err := a.o.Source.RecordedUntil(ctx)
	if err != nil {
		return nil, err
	}
	clusters, err := a.o.Source.Clusters(ctx)
	if len(clusters) < 2 {
		clusters = nil
	}
	return Info{a.o.Source.Cluster(), clusters, last, until, a.o.Recording(ctx)}, err
}

func (a *api) rawRows(r *http.Request) (any, error) {
	q, err := query(r)
	if err != nil {
		return nil, err
	}
	wanted := rawPage
	if q.Limit > 0 {
		wanted = min(wanted, q.Limit)
	}
	q.Limit = wanted
	out := Rows{Entries: []*Entry{}}
	ctx := journal.WithPause(r.Context(), scanTime)
	for e, err := range a.o.Source.Rows(ctx, q) {
		var paused *journal.Paused
		switch {
		case errors.As(err, &paused):
			out.Next = paused.Seq
			return out, nil
		case err != nil:
			return nil, err
		}
		out.Entries = append(out.Entries, EntryOf(&e))
	}
	if len(out.Entries) == wanted {
		out.Next = out.Entries[wanted-1].Seq
	}
	return out, nil
}

// entry returns the change with a sequence number, if it is visible.
func (a *api) entry(r *http.Request, seq int64) (journal.Entry, error) {
	q := journal.Query{After: seq - 1, Before: seq + 1, Quiet: true, Snapshots: true}
	for e, err := range a.o.Source.Rows(r.Context(), q) {
		return e, err
	}
	return journal.Entry{}, journal.ErrNotFound
}

func (a *api) rawContents(r *http.Request) (any, error) {
	out := Contents{Contents: []Content{}}
	size := 0
	texts := strings.Split(r.URL.Query().Get("seq"), ",")
	if len(texts) > rawContents {
		return nil, problem(http.StatusBadRequest, "seq: at most %d numbers", rawContents)
	}
	for _, text := range texts {
		seq, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seq < 1 {
			return nil, problem(http.StatusBadRequest, "seq: %q is not a sequence number", text)
		}
		c := Content{Seq: seq}
		e, err := a.entry(r, seq)
		if err == nil {
			c.Before, c.After, err = e.Contents(r.Context())
		}
		if err != nil {
			if c.Error = errorOf(err); c.Error == nil {
				return nil, err
			}
		}
		size += len(c.Before) + len(c.After)
		if out.Contents = append(out.Contents, c); size > rawBytes {
			break
		}
	}
	return out, nil
}

func (a *api) rawID(r *http.Request) (any, error) {
	e, err := a.o.Source.ByID(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return EntryOf(&e), nil
}

func moment(r *http.Request, name string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get(name))
	if err != nil {
		return t, problem(http.StatusBadRequest, "%s: %q is not a time in RFC 3339", name, r.URL.Query().Get(name))
	}
	return t, nil
}

func (a *api) rawStates(r *http.Request, send func(Line) error) error {
	q, err := objectQuery(r)
	if err != nil {
		return err
	}
	if !q.Since.IsZero() || !q.Until.IsZero() {
		return problem(http.StatusBadRequest, "query: the time is the parameter at; Since and Until are for raw/rows and raw/between")
	}
	at, err := moment(r, "at")
	if err != nil {
		return err
	}
	for s, err := range a.o.Source.At(r.Context(), q, at) {
		if err != nil {
			return err
		}
		form := StateOf(&s)
		if err := send(Line{State: &form}); err != nil {
			return err
		}
	}
	return nil
}

func (a *api) rawBetween(r *http.Request, send func(Line) error) error {
	q, err := objectQuery(r)
	if err != nil {
		return err
	}
	for both, err := range a.o.Source.Between(r.Context(), q) {
		if err != nil {
			return err
		}
		if err := send(Line{Between: &[2]State{StateOf(&both[0]), StateOf(&both[1])}}); err != nil {
			return err
		}
	}
	return nil
}

func (a *api) rawStories(r *http.Request, send func(Line) error) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	for t, err := range a.o.Source.Stories(r.Context(), q) {
		if err != nil {
			return err
		}
		if err := sendStory(&t, send); err != nil {
			return err
		}
	}
	return nil
}

func (a *api) rawStory(r *http.Request, send func(Line) error) error {
	t, err := a.o.Source.Story(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendStory(&t, send)
}

func sendStory(t *story.Tree, send func(Line) error) error {
	text, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode story %s: %w", t.ID, err)
	}
	return send(Line{Story: text})
}

func (a *api) rawHistory(r *http.Request, send func(Line) error) error {
	seq, err := sequence(r.URL.Query().Get("seq"), "seq")
	if err != nil {
		return err
	}
	e, err := a.entry(r, seq)
	if err != nil || !e.Op.HasObject() {
		return errors.Join(err)
	}
	s, err := stateAfter(r.Context(), &e)
	if err != nil {
		return err
	}
	for step, err := range a.o.Source.History(r.Context(), s) {
		if err != nil {
			return err
		}
		if err := send(Line{Step: &Step{EntryOf(&step.Entry), step.Before, step.After, step.Purged}}); err != nil {
			return err
		}
	}
	return nil
}

// stateAfter returns the object of a change as it was after it, to read its history.
func stateAfter(ctx context.Context, e *journal.Entry) (*journal.State, error) {
	_, after, err := e.Contents(ctx)
	if err != nil && !errors.Is(err, journal.ErrPurged) {
		return nil, err
	}
	return &journal.State{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: e.UID, Presence: journal.Present, JSON: after, Last: e}, nil
}

func (a *api) rawSchema(r *http.Request) (any, error) {
	p := r.URL.Query()
	namespaced, err := truth(r, "namespaced")
	if err != nil {
		return nil, err
	}
	k := journal.Kind{Group: p.Get("group"), Version: p.Get("version"), Resource: p.Get("resource"), Kind: p.Get("kind"), Namespaced: namespaced, Cluster: p.Get("cluster")}
	if _, err := access.May(r.Context(), nil); err != nil {
		return nil, err
	}
	var seq int64
	if s := p.Get("seq"); s != "" {
		if seq, err = strconv.ParseInt(s, 10, 64); err != nil || seq < 0 {
			return nil, problem(http.StatusBadRequest, "seq: %q is not a sequence number", s)
		}
	}
	schema, err := a.o.Source.Schema(r.Context(), k, seq)
	return Schema{schema.JSON, schema.From, schema.UpTo}, err
}

func (a *api) rawShortNames(r *http.Request) (any, error) {
	if _, err := access.May(r.Context(), nil); err != nil {
		return nil, err
	}
	names, err := a.o.Source.ShortNames(r.Context())
	if names == nil {
		names = map[string][]string{}
	}
	return ShortNames{names}, err
}

func (a *api) rawNames(r *http.Request) (any, error) {
	return a.namesOf(r, r.URL.Query()["resource"], rawNames)
}

// truth reads a boolean parameter; empty is false.
func truth(r *http.Request, name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, problem(http.StatusBadRequest, "%s: %q is not true or false", name, text)
	}
	return on, nil
}

// limitOf reads the parameter limit, up to most; otherwise is the default.
func limitOf(p url.Values, otherwise, most int) (int, error) {
	text := p.Get("limit")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, problem(http.StatusBadRequest, "limit: %q is not a number from 1 to %d", text, most)
	}
	return n, nil
}

// sequence reads a sequence number; empty is 0.
func sequence(text, name string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, &failure{http.StatusBadRequest, Error{Error: fmt.Sprintf("%s: %q is not a sequence number", name, text)}}
	}
	return n, nil
}
