package auth

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// reviewTimeout bounds one review.
const reviewTimeout = 10 * time.Second

// Reviewer makes reviews. It is safe for concurrent use. An error means that there is no answer; a refusal is an
// answer. Its errors do not contain the token.
type Reviewer interface {
	// ReviewToken verifies a token by a TokenReview.
	ReviewToken(ctx context.Context, token authentication.TokenReviewSpec) (authentication.TokenReviewStatus, error)
	// ReviewAccess checks a user's right by a SubjectAccessReview.
	ReviewAccess(ctx context.Context, access authorization.SubjectAccessReviewSpec) (authorization.SubjectAccessReviewStatus, error)
	// NamespaceCreated returns when a namespace was created; the zero time if it does not exist.
	NamespaceCreated(ctx context.Context, name string) (time.Time, error)
}

// Kubernetes returns the API server's reviewer. It needs `create` on tokenreviews.authentication.k8s.io and
// subjectaccessreviews.authorization.k8s.io, and `get` on namespaces. client-go's limit of requests per second does not apply: Auth limits
// the reviews.
func Kubernetes(c *rest.Config) (Reviewer, error) {
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make client for reviews: %w", err)
	}
	k := &kubernetes{}
	for _, x := range []struct {
		into  **rest.RESTClient
		path  string
		group schema.GroupVersion
	}{{&k.tokens, "/apis", authentication.SchemeGroupVersion}, {&k.access, "/apis", authorization.SchemeGroupVersion}, {&k.core, "/api", schema.GroupVersion{Version: "v1"}}} {
		c := rest.CopyConfig(c)
		c.APIPath, c.GroupVersion = x.path, &x.group
		c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		c.QPS, c.RateLimiter = -1, nil
		if *x.into, err = rest.RESTClientForConfigAndClient(c, client); err != nil {
			return nil, fmt.Errorf("make client for reviews: %w", err)
		}
	}
	return k, nil
}

type kubernetes struct{ tokens, access, core *rest.RESTClient }

func (k *kubernetes) ReviewToken(ctx context.Context, token authentication.TokenReviewSpec) (authentication.TokenReviewStatus, error) {
	var out authentication.TokenReview
	err := k.tokens.Post().Resource("tokenreviews").Body(&authentication.TokenReview{Spec: token}).Do(ctx).Into(&out)
	return out.Status, err
}

func (k *kubernetes) ReviewAccess(ctx context.Context, access authorization.SubjectAccessReviewSpec) (authorization.SubjectAccessReviewStatus, error) {
	var out authorization.SubjectAccessReview
	err := k.access.Post().Resource("subjectaccessreviews").Body(&authorization.SubjectAccessReview{Spec: access}).Do(ctx).Into(&out)
	return out.Status, err
}

func (k *kubernetes) NamespaceCreated(ctx context.Context, name string) (time.Time, error) {
	var out metav1.PartialObjectMetadata
	err := k.core.Get().Resource("namespaces").Name(name).Do(ctx).Into(&out)
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil
	}
	return out.CreationTimestamp.Time, err
}

// complaint logs failed reviews, at most one a minute: clients cause them.
type complaint struct {
	mu   sync.Mutex
	last time.Time
}

func (c *complaint) log(log *slog.Logger, text string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= time.Minute {
		c.last = now
		do := ""
		if apierrors.IsForbidden(err) {
			do = "apply the output of tattler rbac"
		}
		log.Warn(text, "error", err, "do", do)
	}
}

// acquire waits for a place among the reviews that are made at once.
func acquire(ctx context.Context, places chan struct{}) (release func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
