package clientgo

import (
	"context"
	"sync/atomic"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tattler-dev/tattler/internal/leaktest"
)

// complaints counts the errors passed to utilruntime.HandleError.
var complaints atomic.Int64

func TestMain(m *testing.M) {
	// The default handlers wait by the real clock, which is decades ahead of a synctest bubble's.
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) { complaints.Add(1) }} //nolint:reassign // it is meant to be
	leaktest.Main(m)
}
