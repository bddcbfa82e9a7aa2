package controllers

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// theirs is the same controller on controller-runtime, with its cache and its defaults.
func theirs(cfg *rest.Config, c *counts) (*program, error) {
	log.SetLogger(logr.Discard())
	skip := true
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip}})
	if err != nil {
		return nil, fmt.Errorf("make a manager: %w", err)
	}
	cl := mgr.GetClient()
	err = mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, byGroup, func(o client.Object) []string {
		return []string{group(o.(*corev1.Pod))}
	})
	if err != nil {
		return nil, fmt.Errorf("add the index: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).Named("pods").For(&corev1.Pod{}).WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			pod := &corev1.Pod{}
			if err := cl.Get(ctx, req.NamespacedName, pod); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			some := &corev1.PodList{}
			if err := cl.List(ctx, some, client.MatchingFields{byGroup: group(pod)}); err != nil {
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, c.reconciled(pod, len(some.Items))
		}))
	if err != nil {
		return nil, fmt.Errorf("make the controller: %w", err)
	}
	return &program{
		run: mgr.Start,
		synced: func(ctx context.Context) error {
			if !mgr.GetCache().WaitForCacheSync(ctx) {
				return errors.New("the cache did not sync")
			}
			return nil
		},
		list: func() (names []types.NamespacedName, err error) {
			all := &corev1.PodList{}
			err = cl.List(context.Background(), all, client.UnsafeDisableDeepCopy)
			for i := range all.Items {
				names = append(names, client.ObjectKeyFromObject(&all.Items[i]))
			}
			return names, err
		},
	}, nil
}
