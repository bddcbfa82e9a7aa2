package compare

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Canary is the value of the Secret that nobody should receive.
const Canary = "canary-3f9a1c7e5b2d"

// canaries are the forms in which it would leak: as written, and as a Secret holds it.
var canaries = []string{Canary, base64.StdEncoding.EncodeToString([]byte(Canary))}

// load writes to the cluster: ConfigMaps and Deployments that come, change and go, and a Secret.
type load struct {
	client *http.Client
	host   string
	random *rand.Rand
	maps   int // ConfigMaps created so far
	alive  []int
}

func newLoad(config *rest.Config, seed uint64) (*load, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect the writer: %w", err)
	}
	return &load{client: client, host: config.Host, random: rand.New(rand.NewPCG(seed, 1))}, nil
}

type fields = map[string]any

func (l *load) send(ctx context.Context, method, path, contentType string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode object: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, l.host+path, strings.NewReader(string(text)))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := l.client.Do(req)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return nil
}

func (l *load) create(ctx context.Context, path string, o fields) error {
	return l.send(ctx, http.MethodPost, path, "application/json", o)
}

func (l *load) patch(ctx context.Context, path string, o fields) error {
	return l.send(ctx, http.MethodPatch, path, "application/merge-patch+json", o)
}

const (
	mapsPath        = "/api/v1/namespaces/default/configmaps"
	secretsPath     = "/api/v1/namespaces/default/secrets"
	deploymentsPath = "/apis/apps/v1/namespaces/default/deployments"
)

// deploy creates Deployments, whose pods the fake nodes run.
func (l *load) deploy(ctx context.Context, n int) error {
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		if err := l.create(ctx, deploymentsPath, fields{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": fields{"name": name},
			"spec": fields{"replicas": 2, "selector": fields{"matchLabels": fields{"app": name}}, "template": fields{
				"metadata": fields{"labels": fields{"app": name}},
				"spec":     fields{"containers": []any{fields{"name": "app", "image": "registry.example/web:1"}}},
			}},
		}); err != nil {
			return err
		}
	}
	return nil
}

// rollout changes a Deployment's image, so that its pods are replaced.
func (l *load) rollout(ctx context.Context, i, version int) error {
	return l.patch(ctx, fmt.Sprintf("%s/web-%d", deploymentsPath, i), fields{"spec": fields{"template": fields{
		"spec": fields{"containers": []any{fields{"name": "app", "image": fmt.Sprintf("registry.example/web:%d", version)}}},
	}}})
}

// secret creates a Secret with the canary, as kubectl apply would: an annotation repeats it.
func (l *load) secret(ctx context.Context) error {
	return l.create(ctx, secretsPath, fields{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": fields{"name": "database", "annotations": fields{
			"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"database"},"stringData":{"password":"` + Canary + `"}}`,
		}},
		"stringData": fields{"password": Canary},
	})
}

// touchSecret changes a label of the Secret.
func (l *load) touchSecret(ctx context.Context, n int) error {
	return l.patch(ctx, secretsPath+"/database", fields{"metadata": fields{"labels": fields{"n": fmt.Sprint(n)}}})
}

// step makes one change of a ConfigMap: a creation, an update or a deletion.
func (l *load) step(ctx context.Context) error {
	switch choice := l.random.IntN(10); {
	case choice < 2 || len(l.alive) < 20:
		l.maps++
		l.alive = append(l.alive, l.maps)
		return l.create(ctx, mapsPath, fields{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": fmt.Sprintf("settings-%d", l.maps)},
			"data": fields{"value": "0", "text": strings.Repeat("setting\n", 40)},
		})
	case choice < 4:
		i := l.random.IntN(len(l.alive))
		name := l.alive[i]
		l.alive = append(l.alive[:i], l.alive[i+1:]...)
		return l.send(ctx, http.MethodDelete, fmt.Sprintf("%s/settings-%d", mapsPath, name), "application/json", fields{})
	default:
		name := l.alive[l.random.IntN(len(l.alive))]
		return l.patch(ctx, fmt.Sprintf("%s/settings-%d", mapsPath, name), fields{"data": fields{"value": fmt.Sprint(l.random.Int())}})
	}
}

// write makes changes at a rate for a while: to a ConfigMap each, and every second to a Deployment and the Secret.
func (l *load) write(ctx context.Context, d time.Duration, perSecond int) error {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	end := time.After(d)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end:
			return nil
		case <-tick.C:
		}
		err := l.step(ctx)
		if err == nil && n%perSecond == 0 {
			if err = l.rollout(ctx, l.random.IntN(deployments), n+2); err == nil {
				err = l.touchSecret(ctx, l.random.Int())
			}
		}
		if err != nil {
			return err
		}
	}
}
