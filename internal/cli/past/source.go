package past

import (
	"context"

	"github.com/tattler-dev/tattler/internal/history"
)

// Source returns the journal for readers that are not verbs, such as the page. Close closes it.
func (j *Journal) Source() history.Source { return &source{j.source, j} }

// source is a history.Source that notices when its file was replaced.
type source struct {
	history.Source
	j *Journal
}

// Last is like Journal.Last.
func (s *source) Last(ctx context.Context) (int64, error) { return s.j.Last(ctx) }
