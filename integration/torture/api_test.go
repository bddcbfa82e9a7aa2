package torture

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// resource is a kind that is written and judged.
type resource struct{ group, version, plural, kind string }

// name is the resource and group, such as deployments.apps, or configmaps in the core group.
func (r resource) name() string { return strings.TrimSuffix(r.plural+"."+r.group, ".") }

// apiVersion is the value in an object.
func (r resource) apiVersion() string { return strings.TrimPrefix(r.group+"/"+r.version, "/") }

// path is the path of an object; without a name, of its collection; without a namespace, of the collection over
// all.
func (r resource) path(namespace, name string) string {
	p := "/apis/" + r.apiVersion()
	if r.group == "" {
		p = "/api/" + r.version
	}
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	return strings.TrimSuffix(p+"/"+r.plural+"/"+name, "/")
}

var (
	configMaps  = resource{"", "v1", "configmaps", "ConfigMap"}
	secrets     = resource{"", "v1", "secrets", "Secret"}
	deployments = resource{"apps", "v1", "deployments", "Deployment"}
	gadgets     = resource{"torture.tattler.dev", "v1", "gadgets", "Gadget"}
	namespaces  = resource{"", "v1", "namespaces", "Namespace"}
	crds        = resource{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"}

	kinds = []resource{configMaps, secrets, deployments, gadgets}
)

// api is a client of an API server with separate connections.
type api struct {
	url, token string
	client     *http.Client
}

// newAPI is the admin's client of the plane.
func newAPI() (*api, error) {
	ca, err := os.ReadFile(plane.CAFile())
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &api{plane.URL(), plane.AdminToken(), &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 16,
		ResponseHeaderTimeout: 20 * time.Second, // for a server that accepts and does not answer
	}}}, nil
}

// refusal is a response other than 2xx.
type refusal struct {
	code int
	body string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.code, r.body) }

func isRefusal(err error, codes ...int) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return false
	}
	for _, c := range codes {
		if r.code == c {
			return true
		}
	}
	return len(codes) == 0 && r.code < 500
}

// open sends a request and returns the body of the response.
func (a *api) open(ctx context.Context, method, path, contentType string, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Accept", "application/json")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000)) // the code is what matters
		return nil, &refusal{resp.StatusCode, string(text)}
	}
	return resp.Body, nil
}

// do sends a request and returns the whole response.
func (a *api) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	r, err := a.open(ctx, method, path, contentType, body)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// create creates an object unless it exists.
func (a *api) create(ctx context.Context, r resource, namespace string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = a.do(ctx, "POST", r.path(namespace, ""), "application/json", body)
	if isRefusal(err, 409) {
		return nil
	}
	return err
}

// page is a list.
type page struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// list returns all objects of a kind and the version of the list.
func (a *api) list(ctx context.Context, r resource) (items []json.RawMessage, version string, err error) {
	body, err := a.do(ctx, "GET", r.path("", ""), "", nil)
	if err != nil {
		return nil, "", err
	}
	var p page
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, "", fmt.Errorf("read list of %s: %w", r.plural, err)
	}
	return p.Items, p.Metadata.ResourceVersion, nil
}

type fields = map[string]any

// prepare creates the kind Gadget.
func prepare(ctx context.Context) error {
	a, err := newAPI()
	if err != nil {
		return err
	}
	err = a.create(ctx, crds, "", fields{
		"apiVersion": crds.apiVersion(), "kind": crds.kind, "metadata": fields{"name": gadgets.name()},
		"spec": fields{
			"group": gadgets.group, "scope": "Namespaced",
			"names": fields{"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
			"versions": []fields{{"name": "v1", "served": true, "storage": true, "schema": fields{
				"openAPIV3Schema": fields{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	})
	if err != nil {
		return fmt.Errorf("create kind: %w", err)
	}
	return within(ctx, 3*time.Minute, func() error {
		_, _, err := a.list(ctx, gadgets)
		return err
	})
}

// makeNamespaces creates namespaces.
func makeNamespaces(ctx context.Context, a *api, names ...string) error {
	for _, name := range names {
		if err := a.create(ctx, namespaces, "", fields{"metadata": fields{"name": name}}); err != nil {
			return fmt.Errorf("create namespace: %w", err)
		}
	}
	return nil
}
