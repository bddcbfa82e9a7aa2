package informer

import (
	"context"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A verified state is resumed like any other stream: its batches have phase Resuming and a version, and a process
// that is killed meanwhile resumes from there. Only while the deletion of the newest object is still expected, the
// stream holds back what the watch delivers; see hold.go.

const restoreAgain = 2 * time.Second

// restore takes the state that a consumer kept into the empty store, and tells whether the stream may be
// resumed from it. While that state cannot be read nothing else can be done: restore asks for it again.
func (s *stream) restore(ctx context.Context) (resume bool) {
	m := reflector.Machine{State: reflector.Waiting}
	for {
		st, err := s.source.restore(ctx, s.id.Namespace, s.pack)
		switch {
		case err == nil && st == nil:
			return false
		case err == nil:
			return s.begin(st)
		}
		m.Err = fmt.Errorf("restore: %w", err)
		m.Attempts++
		s.Report(m)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(restoreAgain):
		}
	}
}

// pack implements raw.Pack.
func (s *stream) pack(uid, resourceVersion string, sum uint64, json []byte) *compact.Version {
	return s.packer.PackSummed(wire.JSON, uid, resourceVersion, sum, json)
}
