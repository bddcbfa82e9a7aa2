package dropin

import (
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// TestDecoded: the engine is fed by client-go's Reflector.
func TestDecoded(t *testing.T) {
	differ(t, candidate{name: "decoded", prepare: func(cfg *rest.Config) (*http.Client, constructor, error) {
		h, err := rest.HTTPClientFor(cfg)
		return h, clientgo.NewSharedIndexInformer, err
	}}, here.steps)
}

// TestRaw: the engine receives undecoded responses, and decodes only what is read.
func TestRaw(t *testing.T) {
	differ(t, candidate{name: "raw", prepare: func(cfg *rest.Config) (*http.Client, constructor, error) {
		e, err := clientgo.New(cfg, clientgo.Options{})
		if err != nil {
			return nil, nil, err
		}
		return e.HTTPClient(), e.NewInformer, nil
	}}, here.steps)
}
