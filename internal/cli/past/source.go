package past

import (
	"context"

	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Source returns the journal for readers that are not verbs, such as the page. Close closes it.
func (j *Journal) Source() history.Source { return &source{j.recorded, j} }

// Reader returns the reader of the journal's file, for its sinks and streams; nil if a daemon serves the journal.
func (j *Journal) Reader() *journal.Reader {
	r, _ := j.recorded.(*journal.Reader)
	return r
}

// source is a history.Source that notices when its file was replaced.
type source struct {
	history.Source
	j *Journal
}

// Last is like Journal.Last.
func (s *source) Last(ctx context.Context) (int64, error) { return s.j.Last(ctx) }
