package sinkadmin

import (
	"context"
	"errors"
	"testing"

	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/sink"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// nothing is a sink that never receives anything.
type nothing struct{}

func (nothing) String() string                                         { return "nothing" }
func (nothing) Send(_ context.Context, ms []sink.Message) (int, error) { return len(ms), nil }
func (nothing) Close(context.Context) error                            { return nil }

// broken is a sink that accepts nothing.
type broken struct{ nothing }

func (broken) Send(context.Context, []sink.Message) (int, error) { return 0, errors.New("403") }

// slow is a sink that accepts a message when the test permits it.
type slow struct {
	nothing
	arrived, take chan struct{}
}

func (s slow) Send(_ context.Context, ms []sink.Message) (int, error) {
	s.arrived <- struct{}{}
	<-s.take
	return len(ms), nil
}
