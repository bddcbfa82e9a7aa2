package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/bench/harness"
)

// endMark is in the bookmark that ends a streaming list.
const endMark = "k8s.io/initial-events-end"

// bare measures the download of all pods: a list, or a streaming list to its end. With gzip, it
// requests and undoes compression, as net/http does by default.
func bare(stream bool, media string, gzip bool) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		m := harness.NewMeter()
		cfg := config(in.Server)
		cfg.DisableCompression = !gzip
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return nil, fmt.Errorf("make client: %w", err)
		}
		url, accept := in.Server.URL+"/api/v1/pods", media
		if stream {
			url += "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
			if media == apiruntime.ContentTypeProtobuf {
				accept += ";stream=watch"
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, fmt.Errorf("make request: %w", err)
		}
		req.Header.Set("Accept", accept)
		resp, err := client.Do(req)
		if err != nil {
			return nil, fmt.Errorf("download: %w", err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("download: %s", resp.Status)
		}
		n, err := drain(resp.Body, stream, media)
		if err != nil {
			return nil, fmt.Errorf("download: %w", err)
		}
		m.Lap("sync")
		m.Lap("settled")
		m.Set("body B", float64(n))
		return m.Sample(), nil
	}
}

// drain reads a list, or a streaming list up to the bookmark that ends it, and returns its length.
func drain(body io.Reader, stream bool, media string) (int64, error) {
	end := endOfJSON
	switch {
	case !stream:
		end = func([]byte) (int, bool) { return 0, false }
	case media == apiruntime.ContentTypeProtobuf:
		end = endOfFrames
	}
	buf, kept, n := make([]byte, 256<<10), 0, int64(0)
	for {
		read, err := body.Read(buf[kept:])
		n += int64(read)
		keep, done := end(buf[:kept+read])
		if done || !stream && errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("read after %d bytes: %w", n, err)
		}
		if keep == len(buf) {
			return n, fmt.Errorf("read a frame of more than %d bytes", len(buf))
		}
		kept = copy(buf, buf[kept+read-keep:kept+read])
	}
}

// endOfJSON looks for the mark. The caller must keep the end of b, where the mark may begin.
func endOfJSON(b []byte) (keep int, done bool) {
	return min(len(b), len(endMark)-1), bytes.Contains(b, []byte(endMark))
}

// endOfFrames steps from frame to frame by their lengths and looks for the mark in small frames only.
func endOfFrames(b []byte) (keep int, done bool) {
	for len(b) >= 4 {
		n := int(binary.BigEndian.Uint32(b))
		if len(b) < 4+n {
			break
		}
		if n < 1024 && bytes.Contains(b[4:4+n], []byte(endMark)) {
			return 0, true
		}
		b = b[4+n:]
	}
	return len(b), false
}
