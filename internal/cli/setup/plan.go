package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// planTimeout bounds the requests to the server.
const planTimeout = time.Minute

// Plan asks the server which kinds would be watched. It fails if there are none.
func (s *Setup) Plan(ctx context.Context, cluster *kube.Cluster) (*capture.Plan, error) {
	rules, err := quiet.New()
	if err != nil {
		return nil, err
	}
	redactor, err := redact.New(redact.NewRandomKey(), config.Rules(s.Redact)) // for its rules: nothing is hidden
	if err != nil {
		return nil, err
	}
	w, err := capture.New(capture.Options{Config: cluster.Config, Scopes: s.Scopes, Quiet: rules, Redactor: redactor})
	if err != nil {
		return nil, fmt.Errorf("context %q of the kubeconfig: %w", cluster.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	plan, err := w.Plan(ctx)
	if err != nil {
		return nil, cluster.ExplainStart(s.Explain(err))
	}
	if len(plan.Kinds)+len(plan.Unmatched) == 0 {
		return nil, errors.New("nothing would be watched: no kind of the server is left")
	}
	return plan, nil
}
