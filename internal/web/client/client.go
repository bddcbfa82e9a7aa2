// Package client reads a journal that a daemon serves by its API, as if it were a file.
//
// A Journal has what the viewer may see; the daemon decides that. It reads pages, and the objects of several changes at
// once, so that a command needs few requests.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/story"
	"github.com/tattler-dev/tattler/internal/web/api"
)

// Options configure a Journal.
type Options struct {
	// URL is the daemon's address, such as https://tattler.monitoring.svc:8443, without the API's path.
	URL string
	// Client sends the requests, with the viewer's credentials; nil is http.DefaultClient.
	Client *http.Client
	// Close, if set, is called by Journal.Close.
	Close func() error
}

// Journal is a served journal: a history.Source.
type Journal struct {
	o    Options
	info api.Info // when it was opened
}

var _ history.Source = (*Journal)(nil)

// Open opens a served journal. It fails if the address serves none, or refuses the viewer. After an error, the caller
// closes what it passed.
func Open(ctx context.Context, o Options) (*Journal, error) {
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	o.URL = strings.TrimSuffix(o.URL, "/")
	j := &Journal{o: o}
	if err := j.get(ctx, "journal", nil, &j.info); err != nil {
		return nil, fmt.Errorf("open the daemon's journal: %w", err)
	}
	return j, nil
}

// Close closes the journal.
func (j *Journal) Close() error {
	j.o.Client.CloseIdleConnections()
	if j.o.Close != nil {
		return j.o.Close()
	}
	return nil
}

// Cluster is the name in the ids of changes.
func (j *Journal) Cluster() string { return j.info.Cluster }

// URL is the daemon's address.
func (j *Journal) URL() string { return j.o.URL }

// Recording reports whether a daemon records now.
func (j *Journal) Recording(ctx context.Context) bool {
	var i api.Info
	return j.get(ctx, "journal", nil, &i) == nil && i.Recording
}

// Status returns the daemon's state.
func (j *Journal) Status(ctx context.Context) (s control.Status, err error) {
	err = j.get(ctx, "status", nil, &s)
	return s, err
}

// Last returns the newest sequence number.
func (j *Journal) Last(ctx context.Context) (int64, error) {
	var i api.Info
	err := j.get(ctx, "journal", nil, &i)
	return i.Last, err
}

// RecordedUntil returns up to when a daemon recorded.
func (j *Journal) RecordedUntil(ctx context.Context) (time.Time, error) {
	var i api.Info
	err := j.get(ctx, "journal", nil, &i)
	return i.RecordedUntil, err
}

// Clusters returns the names of the recorded clusters.
func (j *Journal) Clusters(ctx context.Context) ([]string, error) {
	var i api.Info
	err := j.get(ctx, "journal", nil, &i)
	if err == nil && len(i.Clusters) == 0 {
		i.Clusters = []string{i.Cluster}
	}
	return i.Clusters, err
}

// Rows yields the changes that a query selects.
func (j *Journal) Rows(ctx context.Context, q journal.Query) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		q, left := q, q.Limit
		for {
			var rows api.Rows
			if err := j.get(ctx, "raw/rows", url.Values{"query": {encode(q)}}, &rows); err != nil {
				yield(journal.Entry{}, err)
				return
			}
			p := newPage(j, rows.Entries...)
			for _, e := range rows.Entries {
				if !yield(*e.Journal(p), nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			switch {
			case rows.Next == 0:
				return
			case q.OldestFirst && rows.Next > q.After:
				q.After = rows.Next
			case !q.OldestFirst && (q.Before == 0 || rows.Next < q.Before):
				q.Before = rows.Next
			default:
				yield(journal.Entry{}, fmt.Errorf("read changes: the daemon repeats change %d", rows.Next))
				return
			}
			q.Limit = max(left, 0)
		}
	}
}

// ByID returns the change whose id is, or begins with, prefix.
func (j *Journal) ByID(ctx context.Context, prefix string) (journal.Entry, error) {
	if prefix == "" {
		return journal.Entry{}, journal.ErrNotFound
	}
	var e api.Entry
	err := j.get(ctx, "raw/id/"+url.PathEscape(prefix), nil, &e)
	var several *journal.AmbiguousError
	if errors.As(err, &several) {
		several.Prefix = prefix
	}
	if err != nil {
		return journal.Entry{}, err
	}
	return *e.Journal(newPage(j, &e)), nil
}

// Stories yields the stories that a query selects.
func (j *Journal) Stories(ctx context.Context, q journal.Query) iter.Seq2[story.Tree, error] {
	return j.stories(ctx, "raw/stories", url.Values{"query": {encode(q)}})
}

// Story returns the story whose id begins with prefix.
func (j *Journal) Story(ctx context.Context, prefix string) (story.Tree, error) {
	if prefix == "" {
		return story.Tree{}, journal.ErrNotFound
	}
	for t, err := range j.stories(ctx, "raw/story/"+url.PathEscape(prefix), nil) {
		return t, err
	}
	return story.Tree{}, journal.ErrNotFound
}

func (j *Journal) stories(ctx context.Context, path string, v url.Values) iter.Seq2[story.Tree, error] {
	return func(yield func(story.Tree, error) bool) {
		for line, err := range j.stream(ctx, path, v) {
			var t story.Tree
			if err == nil {
				err = json.Unmarshal(line.Story, &t)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// At yields objects as they were at a time.
func (j *Journal) At(ctx context.Context, q journal.Query, t time.Time) iter.Seq2[journal.State, error] {
	return func(yield func(journal.State, error) bool) {
		of := q.OfObjects()
		of.Since, of.Until = time.Time{}, time.Time{}
		v := url.Values{"query": {encode(of)}, "at": {t.UTC().Format(time.RFC3339Nano)}}
		for line, err := range j.stream(ctx, "raw/states", v) {
			if err != nil {
				yield(journal.State{}, err)
				return
			}
			if line.State != nil && !yield(j.state(line.State), nil) {
				return
			}
		}
	}
}

// Between yields objects at both ends of a query's times.
func (j *Journal) Between(ctx context.Context, q journal.Query) iter.Seq2[[2]journal.State, error] {
	return func(yield func([2]journal.State, error) bool) {
		for line, err := range j.stream(ctx, "raw/between", url.Values{"query": {encode(q.OfObjects())}}) {
			if err != nil {
				yield([2]journal.State{}, err)
				return
			}
			if b := line.Between; b != nil && !yield([2]journal.State{j.state(&b[0]), j.state(&b[1])}, nil) {
				return
			}
		}
	}
}

// state returns a state, whose entries read their objects from here.
func (j *Journal) state(s *api.State) journal.State { return s.Journal(newPage(j, s.Last, s.Next)) }

// History yields the changes that led to a state.
func (j *Journal) History(ctx context.Context, s *journal.State) iter.Seq2[journal.Step, error] {
	return func(yield func(journal.Step, error) bool) {
		if s.Last == nil {
			return
		}
		for line, err := range j.stream(ctx, "raw/history", url.Values{"seq": {strconv.FormatInt(s.Last.Seq, 10)}}) {
			if errors.Is(err, journal.ErrNotFound) { // retention has removed it, as in a file
				return
			}
			if err != nil {
				yield(journal.Step{}, err)
				return
			}
			st := line.Step
			if st == nil || st.Entry == nil {
				continue
			}
			step := journal.Step{Entry: *st.Entry.Journal(newPage(j, st.Entry)), Before: st.Before, After: st.After, Purged: st.Purged}
			if !yield(step, nil) {
				return
			}
		}
	}
}

// Kinds returns the recorded kinds.
func (j *Journal) Kinds(ctx context.Context) (kinds []journal.Kind, err error) {
	var all api.Kinds
	err = j.get(ctx, "kinds", nil, &all)
	for _, k := range all.Kinds {
		kinds = append(kinds, journal.Kind(k))
	}
	return kinds, err
}

// maxNames is how many names an answer has; the server's limit.
const maxNames = 1000

// Names returns names of objects, at most maxNames.
func (j *Journal) Names(ctx context.Context, resources []string, namespace, prefix string, limit int) ([]string, error) {
	v := url.Values{"resource": resources, "limit": {strconv.Itoa(min(cmp.Or(max(limit, 0), maxNames), maxNames))}}
	setAll(v, map[string]string{"namespace": namespace, "prefix": prefix})
	var names api.Names
	err := j.get(ctx, "raw/names", v, &names)
	return names.Names, err
}

// Schema returns the merge-key schema of a kind, as of a change.
func (j *Journal) Schema(ctx context.Context, k journal.Kind, seq int64) (journal.KindSchema, error) {
	v := url.Values{"seq": {strconv.FormatInt(seq, 10)}, "namespaced": {strconv.FormatBool(k.Namespaced)}}
	setAll(v, map[string]string{"group": k.Group, "version": k.Version, "resource": k.Resource, "kind": k.Kind, "cluster": k.Cluster})
	var s api.Schema
	err := j.get(ctx, "raw/schema", v, &s)
	return journal.KindSchema{JSON: s.Schema, From: s.From, UpTo: s.UpTo}, err
}

// ShortNames returns the short names of kinds.
func (j *Journal) ShortNames(ctx context.Context) (map[string][]string, error) {
	var s api.ShortNames
	err := j.get(ctx, "raw/short-names", nil, &s)
	return s.ShortNames, err
}

// setAll sets the parameters that have a value: the API refuses those that are given without one.
func setAll(v url.Values, parameters map[string]string) {
	for name, value := range parameters {
		if value != "" {
			v.Set(name, value)
		}
	}
}

func encode(q journal.Query) string {
	b, err := json.Marshal(q)
	if err != nil {
		panic(err) // a struct of texts and times
	}
	return string(b)
}
