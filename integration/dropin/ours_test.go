package dropin

import (
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// TestDecoded: the engine has what client-go's Reflector lists and watches.
func TestDecoded(t *testing.T) {
	differ(t, candidate{name: "decoded", prepare: func(cfg *rest.Config) (*http.Client, constructor, error) {
		h, err := rest.HTTPClientFor(cfg)
		return h, clientgo.NewSharedIndexInformer, err
	}}, here.steps)
}

// TestRaw: the engine takes the answers undecoded, and never decodes what nobody reads.
func TestRaw(t *testing.T) {
	differ(t, candidate{name: "raw", prepare: func(cfg *rest.Config) (*http.Client, constructor, error) {
		e, err := clientgo.New(cfg, clientgo.Options{})
		if err != nil {
			return nil, nil, err
		}
		return e.HTTPClient(), e.NewInformer, nil
	}}, here.steps)
}
