package sinkadmin

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/tattler-dev/tattler/internal/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nothing is a sink that is never sent anything.
type nothing struct{}

func (nothing) String() string                                         { return "nothing" }
func (nothing) Send(_ context.Context, ms []sink.Message) (int, error) { return len(ms), nil }
func (nothing) Close(context.Context) error                            { return nil }

// broken is a sink that takes nothing.
type broken struct{ nothing }

func (broken) Send(context.Context, []sink.Message) (int, error) { return 0, errors.New("403") }

// slow is a sink that takes a message when it is told to.
type slow struct {
	nothing
	arrived, take chan struct{}
}

func (s slow) Send(_ context.Context, ms []sink.Message) (int, error) {
	s.arrived <- struct{}{}
	<-s.take
	return len(ms), nil
}
