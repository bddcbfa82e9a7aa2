package run

import (
	"fmt"
	"io"
	"strings"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/file"
	"github.com/tattler-dev/tattler/internal/sink/log"
	"github.com/tattler-dev/tattler/internal/sink/webhook"
)

// newLoader knows the sinks that this program has.
func newLoader() *config.Loader {
	hook := func(address string) config.Options { return &webhook.Options{URL: address} }
	return &config.Loader{Sinks: []config.SinkType{
		{Name: "file", New: func() config.Options { return &file.Options{} }, Schemes: map[string]func(string) config.Options{
			"file": func(address string) config.Options { return &file.Options{Path: pathOf(address)} },
		}},
		{Name: "webhook", New: func() config.Options { return &webhook.Options{} }, Schemes: map[string]func(string) config.Options{
			"http": hook, "https": hook,
		}},
		{Name: "log", New: func() config.Options { return &log.Options{} }, Schemes: map[string]func(string) config.Options{
			"log": func(string) config.Options { return &log.Options{} },
		}},
	}}
}

// pathOf is that of file:PATH or file:///PATH.
func pathOf(address string) string {
	p := strings.TrimPrefix(address, "file:")
	if rest, found := strings.CutPrefix(p, "//"); found && strings.HasPrefix(rest, "/") {
		return rest
	}
	return p
}

// sinks opens what is configured.
func sinks(c *config.Config, out io.Writer) ([]deliver.Options, error) {
	var all []deliver.Options
	for i := range c.Sinks {
		s := &c.Sinks[i]
		opened, err := open(s, out)
		if err != nil {
			return nil, fmt.Errorf("sink %s: %w", s.Name, err)
		}
		o := deliver.Options{
			Name: s.Name, Sink: opened, Snapshots: s.Snapshots, From: deliver.From(s.From), MaxBytes: int(s.MaxBytes),
			Retry: deliver.Retry{Min: s.Retry.Min, Max: s.Retry.Max, Attempts: s.Retry.Attempts}, Paused: s.Paused,
		}
		for _, part := range s.Include {
			o.Include = append(o.Include, deliver.Include(part))
		}
		if s.Filter != nil {
			o.Match = s.Filter.Match
		}
		all = append(all, o)
	}
	return all, nil
}

func open(s *config.Sink, out io.Writer) (sink.Sink, error) {
	switch o := s.Options.(type) {
	case *file.Options:
		f, err := file.New(*o)
		if err != nil {
			return nil, err
		}
		return f, f.Open()
	case *webhook.Options:
		return webhook.New("tattler/"+buildinfo.Version(), *o)
	case *log.Options:
		return log.New(out, "stdout", *o)
	}
	return nil, fmt.Errorf("unknown type %s", s.Type)
}
