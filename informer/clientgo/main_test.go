package clientgo

import (
	"context"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// complaints counts what was handed to utilruntime.HandleError.
var complaints atomic.Int64

func TestMain(m *testing.M) {
	// The handlers that are there by default wait, by a clock that a bubble's is behind by decades.
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) { complaints.Add(1) }} //nolint:reassign // it is meant to be
	goleak.VerifyTestMain(m)
}
