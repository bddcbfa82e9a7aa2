package setup

import (
	"log/slog"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/trace"
)

// newTraceOptions returns the default options of traces.
func newTraceOptions() config.Options {
	o := trace.DefaultOptions()
	return &o
}

// MakeTraces makes the exporter of traces; nil if the configuration has none. It connects later.
func (s *Setup) MakeTraces(log *slog.Logger) (*trace.Exporter, error) {
	o := s.traceOptions()
	if o == nil {
		return nil, nil //nolint:nilnil // a nil exporter drops everything
	}
	e, err := trace.New(s.program.Name+"/"+buildinfo.Version(), *o, log)
	if err != nil {
		return nil, s.Blame("traces", "%s", s.Traces.Hide(err.Error()))
	}
	return e, nil
}

// Sample returns the share of changes that are traced; 0 without traces.
func (s *Setup) Sample() float64 {
	if o := s.traceOptions(); o != nil {
		return o.Sample
	}
	return 0
}

// traceOptions returns the options of traces; nil without any.
func (s *Setup) traceOptions() *trace.Options {
	if s.Traces == nil {
		return nil
	}
	o, _ := s.Traces.Options.(*trace.Options) // of the loader
	return o
}
