package incluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
)

// label marks the Services of Tattler.
const label = "app.kubernetes.io/name=tattler"

// notMetrics leaves out the Services that have no page, only metrics.
const notMetrics = "app.kubernetes.io/component!=metrics"

// server is the API server, as the viewer.
type server struct {
	config *rest.Config
	base   *url.URL
	client *http.Client
}

func newServer(c *rest.Config) (*server, error) {
	base, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	hc, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &server{c, base, hc}, nil
}

// requestTime bounds a request, and maxAnswer an answer in bytes.
const (
	requestTime = 30 * time.Second
	maxAnswer   = 16 << 20
)

// do sends a request. The error of the API server is a *meta.Status.
func (s *server) do(ctx context.Context, method, path string, query url.Values, body, to any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	var in bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&in).Encode(body); err != nil {
			return fmt.Errorf("ask the API server: %w", err)
		}
	}
	u := s.base.JoinPath(path)
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, u.String(), &in)
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	if resp.StatusCode >= 300 {
		var status meta.Status
		if json.Unmarshal(b, &status) != nil || status.Message == "" {
			status.Message = resp.Status
		}
		return &refusal{resp.StatusCode, status.Message}
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	return nil
}

// refusal is an error that the API server answered with.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return "the API server answered: " + r.text }

func isCode(err error, code int) bool {
	var r *refusal
	return errors.As(err, &r) && r.code == code
}

// target is the daemon.
type target struct {
	namespace, service, pod string
	port                    int // of the pod
}

// host is the name in the daemon's certificate.
func (t *target) host() string { return t.service + "." + t.namespace + ".svc" }

// find returns the daemon behind a Service, NAMESPACE/NAME; empty: the only one with Tattler's label.
func (s *server) find(ctx context.Context, name string) (*target, error) {
	service, err := s.service(ctx, name)
	if err != nil {
		return nil, err
	}
	t := &target{namespace: service.Namespace, service: service.Name}
	if len(service.Spec.Selector) == 0 {
		return nil, fmt.Errorf("find the daemon: Service %s/%s selects no pods", t.namespace, t.service)
	}
	var pods core.PodList
	query := url.Values{"labelSelector": {labels.SelectorFromSet(service.Spec.Selector).String()}}
	if err := s.do(ctx, http.MethodGet, "/api/v1/namespaces/"+t.namespace+"/pods", query, nil, &pods); err != nil {
		return nil, fmt.Errorf("find the daemon's pod: %w", err)
	}
	port, err := portOf(service)
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if !isReady(p) {
			continue
		}
		t.pod = p.Name
		t.port, err = podPort(p, port)
		return t, err
	}
	return nil, fmt.Errorf("find the daemon: Service %s/%s has no pod that is ready, of %d", t.namespace, t.service, len(pods.Items))
}

func (s *server) service(ctx context.Context, name string) (*core.Service, error) {
	if name != "" {
		namespace, name, err := split(name, "--in-cluster")
		if err != nil {
			return nil, err
		}
		var one core.Service
		err = s.do(ctx, http.MethodGet, "/api/v1/namespaces/"+namespace+"/services/"+name, nil, nil, &one)
		if err != nil {
			return nil, fmt.Errorf("find the daemon: %w", err)
		}
		return &one, nil
	}
	var all core.ServiceList
	err := s.do(ctx, http.MethodGet, "/api/v1/services", url.Values{"labelSelector": {label + "," + notMetrics}}, nil, &all)
	switch {
	case isCode(err, http.StatusForbidden):
		return nil, fmt.Errorf("find the daemon: you may not list the Services of all namespaces: say --in-cluster=NAMESPACE/NAME")
	case err != nil:
		return nil, fmt.Errorf("find the daemon: %w", err)
	case len(all.Items) == 0:
		return nil, fmt.Errorf("find the daemon: no Service has the label %s; say --in-cluster=NAMESPACE/NAME if it has another one", label)
	case len(all.Items) > 1:
		var names []string
		for i := range all.Items {
			names = append(names, "--in-cluster="+all.Items[i].Namespace+"/"+all.Items[i].Name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("find the daemon: %d Services have the label %s; say %s", len(names), label, strings.Join(names, ", or "))
	}
	return &all.Items[0], nil
}

// portOf returns the Service's port of the page: its only one, or the one named web or https.
func portOf(s *core.Service) (*core.ServicePort, error) {
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; len(s.Spec.Ports) == 1 || p.Name == "web" || p.Name == "https" {
			return p, nil
		}
	}
	return nil, fmt.Errorf("find the daemon: Service %s/%s has no port named web or https", s.Namespace, s.Name)
}

func isReady(p *core.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c core.PodCondition) bool {
		return c.Type == core.PodReady && c.Status == core.ConditionTrue
	})
}

// podPort returns the pod's port behind a Service's port.
func podPort(p *core.Pod, port *core.ServicePort) (int, error) {
	switch {
	case port.TargetPort.Type == intstr.Int && port.TargetPort.IntVal != 0:
		return int(port.TargetPort.IntVal), nil
	case port.TargetPort.Type == intstr.Int:
		return int(port.Port), nil
	}
	for _, c := range p.Spec.Containers {
		for _, cp := range c.Ports {
			if cp.Name == port.TargetPort.StrVal {
				return int(cp.ContainerPort), nil
			}
		}
	}
	return 0, fmt.Errorf("find the daemon: pod %s/%s has no port named %s", p.Namespace, p.Name, port.TargetPort.StrVal)
}

// configMap returns a value of a ConfigMap.
func (s *server) configMap(ctx context.Context, namespace, name, key string) (string, error) {
	var m core.ConfigMap
	if err := s.do(ctx, http.MethodGet, "/api/v1/namespaces/"+namespace+"/configmaps/"+name, nil, nil, &m); err != nil {
		return "", fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	text, ok := m.Data[key]
	if !ok {
		return "", fmt.Errorf("read ConfigMap %s/%s: it has no %s", namespace, name, key)
	}
	return text, nil
}

// token requests a token of a ServiceAccount for the daemon.
func (s *server) token(ctx context.Context, namespace, name string) (authentication.TokenRequestStatus, error) {
	seconds := int64(tokenTime / time.Second)
	in := authentication.TokenRequest{
		TypeMeta: meta.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Spec:     authentication.TokenRequestSpec{Audiences: []string{Audience}, ExpirationSeconds: &seconds},
	}
	var out authentication.TokenRequest
	err := s.do(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+name+"/token", nil, &in, &out)
	if err == nil && out.Status.Token == "" {
		err = errors.New("the API server sent no token")
	}
	if err != nil {
		return out.Status, fmt.Errorf("request a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return out.Status, nil
}
