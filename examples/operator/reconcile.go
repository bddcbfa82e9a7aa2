package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// sites reconciles Sites.
type sites struct {
	client    client.Client // reads the cache
	direct    client.Reader // reads the API server
	scheme    *runtime.Scheme
	directory client.ObjectKey
}

// finalizer keeps a Site until the directory no longer lists it.
const finalizer = "examples.tattler.dev/directory"

// Reconcile implements reconcile.Reconciler.
func (s *sites) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	err := s.reconcile(ctx, request.NamespacedName)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The cache was behind, or another client wrote. That is not a failure: reconcile again.
		slog.Info("somebody else wrote first; reconciling again", "site", request.String(), "error", err)
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{}, err
}

func (s *sites) reconcile(ctx context.Context, key client.ObjectKey) error {
	var site Site
	if err := s.client.Get(ctx, key, &site); err != nil {
		return client.IgnoreNotFound(err)
	}
	if site.DeletionTimestamp != nil { // what it owns goes with it
		if !controllerutil.ContainsFinalizer(&site, finalizer) {
			return nil
		}
		if err := s.list(ctx, &site, ""); err != nil {
			return err
		}
		controllerutil.RemoveFinalizer(&site, finalizer)
		return client.IgnoreNotFound(s.client.Update(ctx, &site))
	}
	if controllerutil.AddFinalizer(&site, finalizer) {
		return s.client.Update(ctx, &site) // its change brings it here again
	}
	config, err := s.config(ctx, &site)
	if apierrors.IsNotFound(err) {
		return s.status(ctx, &site, metav1.ConditionFalse, "NoConfig", "there is no ConfigMap "+site.Spec.Config)
	} else if err != nil {
		return err
	}
	d, err := s.deployment(ctx, &site, config)
	if err != nil {
		return err
	}
	if err := s.service(ctx, &site); err != nil {
		return err
	}
	if err := s.list(ctx, &site, fmt.Sprintf("%s.%s.svc", site.Name, site.Namespace)); err != nil {
		return err
	}
	if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < *d.Spec.Replicas || d.Status.AvailableReplicas < *d.Spec.Replicas {
		return s.status(ctx, &site, metav1.ConditionFalse, "Rollout", fmt.Sprintf("%d of %d replicas are available", d.Status.AvailableReplicas, *d.Spec.Replicas))
	}
	return s.status(ctx, &site, metav1.ConditionTrue, "Available", "all replicas are available")
}

// config returns a hash of the Site's ConfigMap, if it has one.
func (s *sites) config(ctx context.Context, site *Site) (string, error) {
	if site.Spec.Config == "" {
		return "", nil
	}
	var m corev1.ConfigMap
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: site.Namespace, Name: site.Spec.Config}, &m); err != nil {
		return "", err
	}
	data, err := json.Marshal(m.Data) // sorted
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), err
}

// deployment writes the fields that the Site specifies, and leaves other fields alone.
func (s *sites) deployment(ctx context.Context, site *Site, config string) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	done, err := controllerutil.CreateOrUpdate(ctx, s.client, d, func() error {
		app := map[string]string{"site": site.Name}
		d.Spec.Replicas = new(max(1, site.Spec.Replicas))
		if d.Spec.Selector == nil {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: app}
		}
		template := &d.Spec.Template
		template.Labels = app
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, "examples.tattler.dev/config", config)
		if len(template.Spec.Containers) == 0 {
			template.Spec.Containers = make([]corev1.Container, 1)
		}
		c := &template.Spec.Containers[0]
		c.Name, c.Image, c.EnvFrom = "site", site.Spec.Image, nil
		if site.Spec.Config != "" {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: site.Spec.Config}}}}
		}
		return controllerutil.SetControllerReference(site, d, s.scheme)
	})
	if err == nil && done != controllerutil.OperationResultNone {
		slog.Info(string(done)+" Deployment", "site", site.Namespace+"/"+site.Name, "image", site.Spec.Image)
	}
	return d, err
}

func (s *sites) service(ctx context.Context, site *Site) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, s.client, service, func() error {
		service.Spec.Selector = map[string]string{"site": site.Name}
		service.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)}}
		return controllerutil.SetControllerReference(site, service, s.scheme)
	})
	return err
}

// list writes the Site's address to the directory; an empty one removes it.
func (s *sites) list(ctx context.Context, site *Site, address string) error {
	key := site.Namespace + "." + site.Name
	m := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.directory.Namespace, Name: s.directory.Name}}
	err := s.direct.Get(ctx, s.directory, &m) // it need not be in a namespace of the cache
	switch {
	case apierrors.IsNotFound(err) && address == "", err == nil && m.Data[key] == address:
		return nil
	case apierrors.IsNotFound(err):
		m.Data = map[string]string{key: address}
		return s.client.Create(ctx, &m)
	case err != nil:
		return err
	case address == "":
		delete(m.Data, key)
	case m.Data == nil:
		m.Data = map[string]string{key: address}
	default:
		m.Data[key] = address
	}
	return s.client.Update(ctx, &m)
}

// status writes the condition Ready, if it has changed.
func (s *sites) status(ctx context.Context, site *Site, ready metav1.ConditionStatus, reason, message string) error {
	before := site.DeepCopy()
	meta.SetStatusCondition(&site.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: ready, Reason: reason, Message: message, ObservedGeneration: site.Generation,
	})
	if equality.Semantic.DeepEqual(before.Status, site.Status) {
		return nil
	}
	return s.client.Status().Update(ctx, site)
}
