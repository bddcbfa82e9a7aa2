package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/web/api"
)

// The bounds of answers and requests.
const (
	maxAnswer = 64 << 20 // bytes; larger than the server's
	maxLine   = 64 << 20 // bytes of a line: an object at two times
	// attempts is how often a request is sent while the daemon is busy, and again is how long it waits in between.
	attempts = 5
	again    = time.Second
)

// unavailable returns the error of a request that the daemon did not answer, or not completely.
func unavailable(format string, args ...any) error {
	return &history.UnavailableError{Err: fmt.Errorf(format, args...)}
}

// request sends a request; the caller closes the body. It repeats one for which the daemon is too busy.
func (j *Journal) request(ctx context.Context, path string, v url.Values) (*http.Response, error) {
	to := j.o.URL + api.Root + path
	if len(v) > 0 {
		to += "?" + v.Encode()
	}
	for n := 1; ; n++ {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
		if err != nil {
			return nil, fmt.Errorf("ask the daemon: %w", err)
		}
		r.Header.Set("Accept", "application/json")
		resp, err := j.o.Client.Do(r)
		if err != nil {
			return nil, unavailable("ask the daemon: %w", err)
		}
		if resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		busy, err := j.refusal(resp)
		if !busy || n == attempts {
			return nil, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// refusal reads an answer that is an error, and closes it. busy means that the same request may succeed at once.
func (j *Journal) refusal(resp *http.Response) (busy bool, err error) {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return false, unavailable("ask the daemon: %w", err)
	}
	busy = resp.StatusCode == http.StatusTooManyRequests
	var e api.Error
	switch err := json.Unmarshal(b, &e); {
	case err != nil || e.Error == "":
		text := strings.TrimSpace(string(b[:min(len(b), 200)]))
		return busy, passing(resp, fmt.Errorf("%s answered %s: %q", j.o.URL, resp.Status, text))
	case e.Reason == "" || e.Reason == api.ReasonBusy:
		return busy || e.Reason == api.ReasonBusy, passing(resp, fmt.Errorf("the daemon answered: %s", e.Error))
	}
	return false, e.Journal()
}

// passing returns the error of an answer, which is about the journal's availability if the status says so: the daemon is too
// busy, or cannot review the viewer's rights.
func passing(resp *http.Response, err error) error {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &history.UnavailableError{Err: err}
	}
	return err
}

func (j *Journal) get(ctx context.Context, path string, v url.Values, to any) error {
	resp, err := j.request(ctx, path, v)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && len(b) == 0 { // a daemon that ends answers requests in this way
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return cutOff(path, err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		return unexpected(path, err)
	}
	return nil
}

func cutOff(path string, err error) error {
	return unavailable("ask the daemon: its answer to %s was cut off: %w", path, err)
}

func unexpected(path string, err error) error {
	return fmt.Errorf("ask the daemon: this version does not understand its answer to %s: %w", path, err)
}

// stream yields the lines of an answer.
func (j *Journal) stream(ctx context.Context, path string, v url.Values) iter.Seq2[api.Line, error] {
	return func(yield func(api.Line, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		resp, err := j.request(ctx, path, v)
		if err != nil {
			yield(api.Line{}, err)
			return
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			var l api.Line
			err := json.Unmarshal(lines.Bytes(), &l)
			switch {
			case err != nil:
				err = unexpected(path, err)
			case l.End:
				return
			case l.Error != nil:
				err = l.Error.Journal()
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
		yield(api.Line{}, cutOff(path, cmp.Or(lines.Err(), io.ErrUnexpectedEOF)))
	}
}
