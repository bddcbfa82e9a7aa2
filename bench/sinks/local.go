package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/exec"
	"github.com/tattler-dev/tattler/internal/sink/file"
	"github.com/tattler-dev/tattler/internal/sink/webhook"
)

// lines is a file to which each message adds a line.
func lines(path string, to func() (sink.Sink, error)) *place {
	return &place{sink: to, close: func() error { return nil }, receive: func(ctx context.Context, arrived func(int)) error {
		f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		buf := make([]byte, 1<<20)
		for {
			n, err := f.Read(buf)
			if count := bytes.Count(buf[:n], []byte("\n")); count > 0 {
				arrived(count)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if n > 0 {
				continue
			}
			select { // the file is polled: the measured time includes half of this interval on average
			case <-time.After(100 * time.Microsecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}}
}

func openFile(_ context.Context, dir string, _ func(int)) (*place, error) {
	path := filepath.Join(dir, "changes.jsonl")
	return lines(path, func() (sink.Sink, error) { return file.New(file.Options{Path: path}) }), nil
}

// openExec runs tee, which appends its input to a file, once for each batch.
func openExec(_ context.Context, dir string, _ func(int)) (*place, error) {
	path := filepath.Join(dir, "changes.jsonl")
	return lines(path, func() (sink.Sink, error) {
		return exec.New(exec.Options{Command: []string{"tee", "-a", path}, Batch: true})
	}), nil
}

func openWebhook(_ context.Context, _ string, arrived func(int)) (*place, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		arrived(1)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return &place{
		sink: func() (sink.Sink, error) {
			return webhook.New(agent, webhook.Options{URL: "http://" + l.Addr().String()})
		},
		close: func() error {
			err := server.Close()
			if end := <-served; !errors.Is(end, http.ErrServerClosed) {
				err = errors.Join(err, end)
			}
			return err
		},
	}, nil
}
