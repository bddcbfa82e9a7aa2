package clientgo

import (
	"testing"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

func TestOurs(t *testing.T) { judge(t, clientgo.NewSharedIndexInformer) }
