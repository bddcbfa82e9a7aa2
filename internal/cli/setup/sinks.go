package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/file"
	"github.com/tattler-dev/tattler/internal/sink/log"
	"github.com/tattler-dev/tattler/internal/sink/webhook"
)

// Loader knows the sinks that this program has.
func Loader() *config.Loader {
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

// MakeSinks makes what is configured; out is stdout. Files are opened by open: before the journal is ours,
// they may be those of a daemon that runs.
func (s *Setup) MakeSinks(out io.Writer) (all []deliver.Options, open func() error, err error) {
	var opens []func() error
	for i := range s.Sinks {
		c := &s.Sinks[i]
		made, err := newSink(c, out)
		if err != nil {
			return nil, nil, failure(c, err)
		}
		if f, ok := made.(*file.Sink); ok {
			opens = append(opens, func() error { return failure(c, f.Open()) })
		}
		all = append(all, options(c, made))
	}
	return all, func() error {
		for _, open := range opens {
			if err := open(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// failure is what is wrong with a sink, without its credentials.
func failure(c *config.Sink, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sink %s: %s", c.Name, c.Hide(err.Error()))
}

func options(c *config.Sink, to sink.Sink) deliver.Options {
	o := deliver.Options{
		Name: c.Name, Sink: to, Snapshots: c.Snapshots, From: deliver.From(c.From), MaxBytes: int(c.MaxBytes),
		Retry: deliver.Retry{Min: c.Retry.Min, Max: c.Retry.Max, Attempts: c.Retry.Attempts}, Paused: c.Paused,
	}
	for _, part := range c.Include {
		o.Include = append(o.Include, deliver.Include(part))
	}
	if c.Filter != nil {
		o.Match = c.Filter.Match
	}
	return o
}

// Place is what a sink calls itself, such as file changes.jsonl; it holds no credentials. Nothing is
// opened, but it is an error where a folder or a certificate is missing.
func Place(c *config.Sink) (string, error) {
	s, err := newSink(c, io.Discard)
	if err != nil {
		return "", failure(c, err)
	}
	return fmt.Sprint(s), s.Close(context.Background())
}

// newSink makes a sink, which neither opens a file nor connects to anybody yet.
func newSink(c *config.Sink, out io.Writer) (sink.Sink, error) {
	switch o := c.Options.(type) {
	case *file.Options:
		if _, err := os.Stat(filepath.Dir(o.Path)); err != nil {
			return nil, fmt.Errorf("look at its folder, which must exist: %w", err)
		}
		return file.New(*o)
	case *webhook.Options:
		return webhook.New("tattler/"+buildinfo.Version(), *o)
	case *log.Options:
		return log.New(out, "stdout", *o)
	}
	return nil, fmt.Errorf("unknown type %s", c.Type)
}

// SinkNames are the sinks' names, in their order.
func (s *Setup) SinkNames() []string {
	var names []string
	for _, c := range s.Sinks {
		names = append(names, c.Name)
	}
	return names
}
