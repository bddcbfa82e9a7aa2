package differential

import (
	"testing"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// TestDifferential lets client-go's informer judge ours.
func TestDifferential(t *testing.T) { run(t, 60, clientgo.NewSharedIndexInformer) }
