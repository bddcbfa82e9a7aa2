// Command image-gate is a validating admission webhook: a Deployment that carries a label, and for which a source has no
// image, is rejected at once. It applies the rule of image-setter.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/images"
	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
)

func main() {
	rule := images.NewFlags()
	listen := flag.String("listen", "127.0.0.1:8443", "`address` to serve HTTPS at")
	host := flag.String("host", "", "`name` by which the API server reaches it: an address, or SERVICE.NAMESPACE.svc; if empty, the address of --listen")
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, rule, *listen, *host) })
}

func run(ctx context.Context, cfg *rest.Config, flags *images.Flags, listen, host string) error {
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	rule, err := flags.Rule(cluster)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with --listen", err)
	}
	defer listener.Close()
	w, err := newWebhook(listener.Addr(), host)
	if err != nil {
		return err
	}
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		if err := cluster.Wait(ctx); err != nil { // until then, a key that is not found may exist
			return err
		}
		if err := w.register(ctx, cfg, rule.Label); err != nil {
			return err
		}
		slog.Info("registered, and serving", "url", w.url())
		defer slog.Warn("still registered: until it runs again, Deployments with the label are refused; to end that, delete the validatingwebhookconfiguration image-gate")
		return program.Serve(ctx, listener, &http.Server{Handler: gate{rule}, TLSConfig: w.tls})
	})
}

// gate answers the API server's questions.
type gate struct{ rule *images.Rule }

func (g gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 8<<20)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, fmt.Sprintf("the body is not an AdmissionReview: %v", err), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if err := g.judge(r.Context(), review.Request); err != nil {
		slog.Info("refused", "deployment", review.Request.Namespace+"/"+review.Request.Name, "error", err)
		review.Response.Allowed = false
		review.Response.Result = &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error()}
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&review)
}

// judge returns why a request is refused.
func (g gate) judge(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	var d, old appsv1.Deployment
	if err := json.Unmarshal(r.Object.Raw, &d); err != nil {
		return fmt.Errorf("the object is not a Deployment: %w", err)
	}
	value, has := d.Labels[g.rule.Label]
	if r.Operation == admissionv1.Update {
		if err := json.Unmarshal(r.OldObject.Raw, &old); err != nil {
			return fmt.Errorf("the old object is not a Deployment: %w", err)
		}
		// A change that deploys nothing passes. Otherwise a Deployment that has lost its image could not be annotated or scaled.
		if old.Labels[g.rule.Label] == value && equality.Semantic.DeepEqual(old.Spec.Template, d.Spec.Template) {
			return nil
		}
	}
	if !has {
		return nil
	}
	_, err := g.rule.Image(ctx, &d)
	if err != nil && !errors.As(err, new(*images.Missing)) {
		slog.Warn("the source does not answer", "error", err)
		return fmt.Errorf("the source of images does not answer, so it is unknown whether it has one for the label %s=%s", g.rule.Label, value)
	}
	return err
}
