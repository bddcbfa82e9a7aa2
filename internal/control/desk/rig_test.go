package desk

import (
	"context"
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
