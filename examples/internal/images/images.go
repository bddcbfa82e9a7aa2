// Package images is the rule that image-setter and image-gate share: which image a Deployment should have, by a label
// and a source outside of it.
package images

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
)

// Flags are the flags of a rule.
type Flags struct{ label, container, image, configMap, url string }

// NewFlags adds the flags of a rule to the command line.
func NewFlags() *Flags {
	f := &Flags{}
	flag.StringVar(&f.label, "label", "image-from", "`key` of the label that a Deployment must have; its value is what to ask the source for")
	flag.StringVar(&f.container, "container", "", "`name` of the container; the first one if empty")
	flag.StringVar(&f.image, "image", "", "source: this `image` for every Deployment")
	flag.StringVar(&f.configMap, "configmap", "", "source: this ConfigMap, as `namespace/name`; its keys are the values of the label")
	flag.StringVar(&f.url, "url", "", "source: an HTTP server at this `address`; GET ADDRESS/VALUE returns the image")
	return f
}

// Rule says which image Deployments should have.
type Rule struct {
	// Label is the key of the label that makes it apply.
	Label string
	// ConfigMap is the source, if it is one.
	ConfigMap *informer.Informer[*corev1.ConfigMap]

	container string
	image     func(ctx context.Context, value string) (string, error)
}

// Missing says that a source has no image for a value.
type Missing struct{ why string }

func (e *Missing) Error() string { return e.why }

// Rule makes the rule that the flags describe.
func (f *Flags) Rule(cluster *informer.Cluster) (*Rule, error) {
	if errs := validation.IsQualifiedName(f.label); errs != nil {
		return nil, program.Usage("--label %q is not the key of a label: %s", f.label, strings.Join(errs, "; "))
	}
	r := &Rule{Label: f.label, container: f.container}
	var err error
	switch {
	case f.image != "" && f.configMap == "" && f.url == "":
		if !isImage(f.image) {
			return nil, program.Usage("--image %q is not an image, such as nginx:1.13", f.image)
		}
		r.image = func(context.Context, string) (string, error) { return f.image, nil }
	case f.configMap != "" && f.image == "" && f.url == "":
		namespace, name, ok := strings.Cut(f.configMap, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, program.Usage("--configmap %q: write it as namespace/name", f.configMap)
		}
		r.ConfigMap, err = informer.For[*corev1.ConfigMap](cluster, informer.InNamespaces(namespace), informer.WithFields("metadata.name="+name))
		r.image = fromConfigMap(r.ConfigMap, namespace, name)
	case f.url != "" && f.image == "" && f.configMap == "":
		if u, err := url.Parse(f.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, program.Usage("--url %q is not an http or https address", f.url)
		}
		r.image = fromURL(strings.TrimSuffix(f.url, "/"))
	default:
		return nil, program.Usage("give one source of images: --image, --configmap or --url")
	}
	return r, err
}

// Container returns the index of the container that the rule is about.
func (r *Rule) Container(d *appsv1.Deployment) (int, error) {
	for i, c := range d.Spec.Template.Spec.Containers {
		if r.container == "" || c.Name == r.container {
			return i, nil
		}
	}
	return 0, &Missing{fmt.Sprintf("the Deployment has no container %q", r.container)}
}

// Has reports whether a Deployment has an image where the rule wants it.
func (r *Rule) Has(d *appsv1.Deployment, image string) bool {
	i, err := r.Container(d)
	return err == nil && d.Spec.Template.Spec.Containers[i].Image == image
}

// Image returns the image that a Deployment with the label should have. The error is a *Missing if the source has no image,
// and another one if it does not answer.
func (r *Rule) Image(ctx context.Context, d *appsv1.Deployment) (string, error) {
	if _, err := r.Container(d); err != nil {
		return "", err
	}
	image, err := r.image(ctx, d.Labels[r.Label])
	if image = strings.TrimSpace(image); err == nil && !isImage(image) {
		err = &Missing{fmt.Sprintf("the source has %q for %q, which is not an image", image, d.Labels[r.Label])}
	}
	return image, err
}

// isImage reports whether a text can be the name of an image, as far as that can be seen without a registry.
func isImage(text string) bool { return text != "" && !strings.ContainsAny(text, " \n\t") }

func fromConfigMap(maps *informer.Informer[*corev1.ConfigMap], namespace, name string) func(context.Context, string) (string, error) {
	return func(_ context.Context, value string) (string, error) {
		m, err := maps.Get(namespace, name)
		if errors.Is(err, informer.ErrNotFound) {
			return "", &Missing{fmt.Sprintf("there is no ConfigMap %s/%s", namespace, name)}
		} else if err != nil {
			return "", err
		}
		image, ok := m.Data[value]
		if !ok {
			return "", &Missing{fmt.Sprintf("the ConfigMap %s/%s has no key %q", namespace, name, value)}
		}
		return image, nil
	}
}

func fromURL(base string) func(context.Context, string) (string, error) {
	client := http.Client{Timeout: 5 * time.Second}
	return func(ctx context.Context, value string) (string, error) {
		at := base + "/" + url.PathEscape(value)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return "", err
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1024))
		switch {
		case err != nil:
			return "", fmt.Errorf("read %s: %w", at, err)
		case resp.StatusCode == http.StatusNotFound:
			return "", &Missing{at + " has nothing: 404"}
		case resp.StatusCode != http.StatusOK:
			return "", fmt.Errorf("%s answered %s", at, resp.Status)
		}
		return string(body), nil
	}
}
