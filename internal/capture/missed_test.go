package capture

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// deaf is a client's transport whose watches leave out frames that contain "missed".
type deaf struct{ http.RoundTripper }

func (d deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(r)
	if q := r.URL.Query(); err != nil || q.Get("watch") != "true" || q.Get("sendInitialEvents") != "" { // a streaming list is a list
		return resp, err
	}
	out, in := io.Pipe()
	body := resp.Body
	go func() {
		for lines := bufio.NewReader(body); ; {
			line, err := lines.ReadBytes('\n')
			if bytes.Contains(line, []byte(`"missed"`)) {
				line = nil
			}
			if _, failed := in.Write(line); failed != nil || err != nil {
				in.CloseWithError(err)
				return
			}
		}
	}()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{out, closers{out, body}}
	return resp, nil
}

type closers []io.Closer

func (all closers) Close() (err error) {
	for _, c := range all {
		err = c.Close()
	}
	return err
}

// written returns a ConfigMap's fields as its manager wrote them at a time.
func written(value string, at time.Time) map[string]any {
	return map[string]any{"data": map[string]any{"x": value}, "metadata": map[string]any{
		"creationTimestamp": time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339),
		"managedFields": []any{map[string]any{
			"manager": "helm", "operation": "Update", "time": at.UTC().Format(time.RFC3339),
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:data": map[string]any{"f:x": map[string]any{}}},
		}},
	}}
}

// TestMissedTime: an audit finds an update that no watch delivered. Its time is the server's, and its interval holds it,
// whether this process or an earlier one missed it.
func TestMissedTime(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server, kept := informertest.NewServer(), &memory{streams: map[string]*remembered{}}
			server.Serve(cmGVR, "ConfigMap")
			first := time.Now()
			server.Put(cmGVR, "n", "a", written("1", first))
			redactor, err := redact.New(redact.NewRandomKey(), nil)
			if err != nil {
				t.Fatal(err)
			}
			kept.sums(redactor.SumKeyID())
			run := func(during func()) (all []Version) {
				cfg := server.Config()
				cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return deaf{rt} })
				o := Options{Scopes: []Scope{{Types: []string{"configmaps"}}}, Config: cfg, Redactor: redactor, Kept: kept}
				if o.Quiet, err = quiet.New(); err != nil {
					t.Fatal(err)
				}
				w, err := New(o)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended, read := make(chan error, 1), make(chan struct{})
				go func() { ended <- w.Run(ctx) }()
				go func() {
					defer close(read)
					for m := range w.Messages() {
						if m.Batch != nil {
							kept.keep(m.Batch)
							all = append(all, m.Batch.Changes...)
						}
						if m.Flush != nil {
							close(m.Flush)
						}
					}
				}()
				during()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				<-read
				return all
			}
			var at time.Time
			miss := func() {
				<-time.After(10 * time.Minute)
				at = time.Now()
				server.Put(cmGVR, "n", "a", written("missed", at))
				<-time.After(10 * time.Minute)
			}
			var all []Version
			if restart {
				run(miss)
				all = run(func() { <-time.After(10 * time.Minute) })
			} else {
				all = run(func() {
					miss()
					<-time.After(13 * time.Hour)
				})
			}
			var update, gap *Version
			for i := range all {
				switch all[i].Op {
				case event.Updated:
					update = &all[i]
				case event.Gap:
					gap = &all[i]
				}
			}
			if update == nil || gap == nil {
				t.Fatalf("restart %v: %+v", restart, all)
			}
			if !update.Time.Equal(at) || !update.Net || update.Since.Before(first) || update.Since.After(at) {
				t.Errorf("restart %v: the update has time %v, since %v, net %v; want %v, since at least %v",
					restart, update.Time, update.Since, update.Net, at, first)
			}
			if gap.Gap.Reason != "missed" || gap.Since.After(at) || gap.Since.IsZero() != restart {
				t.Errorf("restart %v: the gap is %+v since %v", restart, gap.Gap, gap.Since)
			}
			if restart {
				if ev := gap.Event("c", event.Data{}); ev.Data.Observed.After != nil {
					t.Errorf("the gap's event claims that it began after %v", ev.Data.Observed.After)
				}
			}
		})
	}
}
