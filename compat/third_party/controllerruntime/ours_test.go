package controllerruntime

import (
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

// raw: the engine sends the requests itself, and never decodes what nobody reads.
func raw(o clientgo.Options) func(*rest.Config) (*http.Client, newInformer, error) {
	return func(cfg *rest.Config) (*http.Client, newInformer, error) {
		e, err := clientgo.New(cfg, o)
		if err != nil {
			return nil, nil, err
		}
		return e.HTTPClient(), e.NewInformer, nil
	}
}

// decoded: the engine has what client-go's Reflector lists and watches.
func decoded(*rest.Config) (*http.Client, newInformer, error) {
	return nil, clientgo.NewSharedIndexInformer, nil
}
