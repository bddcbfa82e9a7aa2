package rights

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Lack is a right that is missing, entirely or in part, or that the server could not answer for.
type Lack struct {
	Right
	// Missing are the verbs that are not granted.
	Missing []string
	// Err is why the right is unknown; nil if Missing is the answer.
	Err error
}

// parallel bounds the reviews that are on their way at a time.
const parallel = 8

// Reviewer asks an API server for the rights of its own user. It is safe for concurrent use.
type Reviewer struct {
	client   rest.Interface
	slots    chan struct{}
	requests atomic.Int64
}

// NewReviewer returns a reviewer for a client configuration. It sends nothing yet.
func NewReviewer(config *rest.Config) (*Reviewer, error) {
	d, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(config))
	if err != nil {
		return nil, fmt.Errorf("prepare reviews of rights: %w", err)
	}
	return &Reviewer{client: d.RESTClient(), slots: make(chan struct{}, parallel)}, nil
}

// Requests returns how many reviews were sent.
func (r *Reviewer) Requests() int64 { return r.requests.Load() }

// Exactly asks for each verb of a right with a SelfSubjectAccessReview; nil means that all are granted. The answer is exact
// with any authorizer.
func (r *Reviewer) Exactly(ctx context.Context, right Right) *Lack {
	l := &Lack{Right: right}
	for _, verb := range right.Verbs {
		a := authorization.ResourceAttributes{Namespace: right.Namespace, Verb: verb, Group: right.Group, Resource: right.Resource, Name: right.Name}
		if right.Group == "" && right.Resource == "namespaces" && right.Name != "" {
			a.Namespace = right.Name // as the server takes a request for one
		}
		allowed, err := r.allowed(ctx, a)
		if err != nil {
			l.Err = err
			return l
		}
		if !allowed {
			l.Missing = append(l.Missing, verb)
		}
	}
	if len(l.Missing) == 0 {
		return nil
	}
	return l
}

func (r *Reviewer) allowed(ctx context.Context, a authorization.ResourceAttributes) (bool, error) {
	answer := authorization.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec:     authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &a},
	}
	if err := r.post(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &answer); err != nil {
		return false, fmt.Errorf("ask for rights: %w", err)
	}
	return answer.Status.Allowed, nil
}

// nowhere is a namespace that does not exist. It has no role bindings, so that the rules for it are those that apply
// to the whole cluster.
const nowhere = "tattler-no-such-namespace"

// Lacking returns the missing rights, in order. It reads the rules of each namespace with one SelfSubjectRulesReview, and
// asks for each right that they do not contain: rules are a lower bound, as not every authorizer can list them. An
// error means that no right was reviewed.
func (r *Reviewer) Lacking(ctx context.Context, all []Right) ([]Lack, error) {
	rules := map[string][]authorization.ResourceRule{}
	for _, right := range all {
		ns := right.Namespace
		if ns == "" {
			ns = nowhere
		}
		if _, known := rules[ns]; known {
			continue
		}
		found, err := r.rules(ctx, ns)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		rules[ns] = found // after an error empty: each right is asked for
	}
	lacks := make([]*Lack, len(all))
	var asking sync.WaitGroup
	for i, right := range all {
		ns := right.Namespace
		if ns == "" {
			ns = nowhere
		}
		if !slices.ContainsFunc(right.Verbs, func(verb string) bool { return !granted(rules[ns], right, verb) }) {
			continue
		}
		asking.Go(func() { lacks[i] = r.Exactly(ctx, right) })
	}
	asking.Wait()
	var out []Lack
	unknown := 0
	for _, l := range lacks {
		if l != nil {
			out = append(out, *l)
			if l.Err != nil {
				unknown++
			}
		}
	}
	if unknown > 0 && unknown == len(all) {
		return nil, out[0].Err
	}
	return out, nil
}

func (r *Reviewer) rules(ctx context.Context, namespace string) ([]authorization.ResourceRule, error) {
	answer := authorization.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
		Spec:     authorization.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}
	if err := r.post(ctx, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &answer); err != nil {
		return nil, fmt.Errorf("ask for rules: %w", err)
	}
	return answer.Status.ResourceRules, nil
}

// granted reports whether rules contain a verb of a right.
func granted(rules []authorization.ResourceRule, right Right, verb string) bool {
	has := func(list []string, want string) bool {
		return slices.Contains(list, want) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(rule authorization.ResourceRule) bool {
		return has(rule.Verbs, verb) && has(rule.APIGroups, right.Group) && has(rule.Resources, right.Resource) &&
			(len(rule.ResourceNames) == 0 || right.Name != "" && slices.Contains(rule.ResourceNames, right.Name))
	})
}

// post sends a review when a slot is free, and decodes the answer into it.
func (r *Reviewer) post(ctx context.Context, path string, review any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return err
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	r.requests.Add(1)
	result := r.client.Post().AbsPath(path).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body).Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	raw, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(raw, review)
	}
	if err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}

// GroupResource names the kind, such as deployments.apps.
func (r Right) GroupResource() string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}

// Subject names what the right is for, such as deployments.apps or namespaces/shop.
func (r Right) Subject() string {
	name := r.GroupResource()
	if r.Name != "" {
		name += "/" + r.Name
	}
	return name
}

// Text says what is missing, such as: may not get, watch in shop.
func (l *Lack) Text() string {
	if l.Err != nil {
		return "rights not known: " + l.Err.Error()
	}
	text := "may not " + strings.Join(l.Missing, ", ")
	if l.Namespace != "" {
		text += " in " + l.Namespace
	}
	return text
}

// User returns the name of the user whose rights are reviewed.
func (r *Reviewer) User(ctx context.Context) (string, error) {
	answer := authentication.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
	if err := r.post(ctx, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &answer); err != nil {
		return "", fmt.Errorf("ask for the user: %w", err)
	}
	return answer.Status.UserInfo.Username, nil
}
