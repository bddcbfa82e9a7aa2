package past

import (
	"context"
	"errors"

	"github.com/tattler-dev/tattler/internal/control"
)

// serving opens a served journal; nil if the flags select a file.
func (f *Flags) serving(ctx context.Context) (Served, error) {
	if f.Serving == nil {
		return nil, nil
	}
	return f.Serving(ctx)
}

// Status returns the state of the daemon that writes the journal.
func (f *Flags) Status(ctx context.Context) (control.Status, error) {
	s, err := f.serving(ctx)
	if err != nil {
		return control.Status{}, err
	}
	if s != nil {
		status, err := s.Status(ctx)
		return status, errors.Join(err, s.Close())
	}
	path, err := f.File(ctx)
	if err != nil {
		return control.Status{}, err
	}
	return (&control.Client{Journal: path}).Status(ctx)
}
