package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// kinds are the watched kinds: plural, and path of the list over all namespaces.
var kinds = map[string]string{
	"configmaps":  "/api/v1/configmaps",
	"secrets":     "/api/v1/secrets",
	"pods":        "/api/v1/pods",
	"deployments": "/apis/apps/v1/deployments",
}

// Observer records every change of the watched kinds in the order in which the API server sends them. It never resumes a
// watch: a broken one is an error, because then the observer might have missed something.
type Observer struct {
	mu      sync.Mutex
	changes []Change
	err     error
	running sync.WaitGroup
}

// Watch begins to record. It returns when all watches are open; they end with ctx. The caller waits with [Observer.Wait].
func Watch(ctx context.Context, config *rest.Config) (*Observer, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect the observer: %w", err)
	}
	w := &Observer{}
	from, err := version(ctx, client, config.Host+kinds["configmaps"])
	if err != nil {
		return nil, fmt.Errorf("begin to watch: %w", err)
	}
	for kind, path := range kinds {
		body, err := get(ctx, client, config.Host+path+"?watch=true&timeoutSeconds=3600&resourceVersion="+from)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind, err)
		}
		w.running.Go(func() {
			defer body.Close()
			err := w.record(kind, json.NewDecoder(body))
			if ctx.Err() == nil {
				w.mu.Lock()
				w.err = errors.Join(w.err, fmt.Errorf("the observer's watch of %s ended: %w", kind, err))
				w.mu.Unlock()
			}
		})
	}
	return w, nil
}

// version returns the version of a list. All kinds share one order of versions, that of etcd.
func version(ctx context.Context, client *http.Client, url string) (string, error) {
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	body, err := get(ctx, client, url+"?limit=1")
	if err != nil {
		return "", err
	}
	err = json.NewDecoder(body).Decode(&list)
	return list.Metadata.ResourceVersion, errors.Join(err, body.Close())
}

func get(ctx context.Context, client *http.Client, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("GET %s: %s", url, resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}

// object is what the observer and the receivers read of an object.
type object struct {
	Metadata struct {
		UID             string `json:"uid"`
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

func (o object) change(kind, typ string, at time.Time) (Change, error) {
	version, err := strconv.ParseInt(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return Change{}, fmt.Errorf("read the version of %s %s/%s: %w", kind, o.Metadata.Namespace, o.Metadata.Name, err)
	}
	return Change{
		UID: o.Metadata.UID, Kind: kind, Name: o.Metadata.Namespace + "/" + o.Metadata.Name, Version: version, Type: typ, At: at,
	}, nil
}

func (w *Observer) record(kind string, d *json.Decoder) error {
	for {
		var e struct {
			Type   string `json:"type"`
			Object object `json:"object"`
		}
		if err := d.Decode(&e); err != nil {
			return err
		}
		if e.Type == "ERROR" {
			return errors.New("the API server ended it")
		}
		c, err := e.Object.change(kind, e.Type, time.Now())
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.changes = append(w.changes, c)
		w.mu.Unlock()
	}
}

// Seen returns what was recorded so far.
func (w *Observer) Seen() []Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Change(nil), w.changes...)
}

// Wait waits until the watches ended, and returns why one ended early.
func (w *Observer) Wait() error {
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
