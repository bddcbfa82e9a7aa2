package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
	"github.com/tattler-dev/tattler/informer"
)

// builtins open an informer for each kind that devcluster's API server serves and k8s.io/api has a type for.
var builtins = []func(*informer.Cluster) (opened, error){
	builtin[*admissionregistrationv1.MutatingAdmissionPolicyBinding], builtin[*admissionregistrationv1.MutatingAdmissionPolicy],
	builtin[*admissionregistrationv1.MutatingWebhookConfiguration], builtin[*admissionregistrationv1.ValidatingAdmissionPolicyBinding],
	builtin[*admissionregistrationv1.ValidatingAdmissionPolicy], builtin[*admissionregistrationv1.ValidatingWebhookConfiguration],
	builtin[*admissionregistrationv1alpha1.MutatingAdmissionPolicyBinding], builtin[*admissionregistrationv1alpha1.MutatingAdmissionPolicy],
	builtin[*admissionregistrationv1beta1.MutatingAdmissionPolicyBinding], builtin[*admissionregistrationv1beta1.MutatingAdmissionPolicy],
	builtin[*apiserverinternalv1alpha1.StorageVersion],
	builtin[*appsv1.ControllerRevision], builtin[*appsv1.DaemonSet], builtin[*appsv1.Deployment], builtin[*appsv1.ReplicaSet],
	builtin[*appsv1.StatefulSet],
	builtin[*autoscalingv1.HorizontalPodAutoscaler],
	builtin[*autoscalingv2.HorizontalPodAutoscaler],
	builtin[*batchv1.CronJob], builtin[*batchv1.Job],
	builtin[*certificatesv1.CertificateSigningRequest],
	builtin[*coordinationv1.Lease],
	builtin[*coordinationv1alpha2.LeaseCandidate],
	builtin[*coordinationv1beta1.LeaseCandidate],
	builtin[*corev1.Endpoints], //nolint:staticcheck // deprecated, but served
	builtin[*corev1.ConfigMap], builtin[*corev1.Event], builtin[*corev1.LimitRange], builtin[*corev1.Namespace],
	builtin[*corev1.Node], builtin[*corev1.PersistentVolumeClaim], builtin[*corev1.PersistentVolume], builtin[*corev1.PodTemplate], builtin[*corev1.Pod],
	builtin[*corev1.ReplicationController], builtin[*corev1.ResourceQuota], builtin[*corev1.Secret], builtin[*corev1.ServiceAccount],
	builtin[*corev1.Service],
	builtin[*discoveryv1.EndpointSlice],
	builtin[*eventsv1.Event],
	builtin[*flowcontrolv1.FlowSchema], builtin[*flowcontrolv1.PriorityLevelConfiguration],
	builtin[*networkingv1.IPAddress], builtin[*networkingv1.IngressClass], builtin[*networkingv1.Ingress], builtin[*networkingv1.NetworkPolicy],
	builtin[*networkingv1.ServiceCIDR],
	builtin[*networkingv1beta1.IPAddress], builtin[*networkingv1beta1.ServiceCIDR],
	builtin[*nodev1.RuntimeClass],
	builtin[*policyv1.PodDisruptionBudget],
	builtin[*rbacv1.ClusterRoleBinding], builtin[*rbacv1.ClusterRole], builtin[*rbacv1.RoleBinding], builtin[*rbacv1.Role],
	builtin[*resourcev1.DeviceClass], builtin[*resourcev1.ResourceClaimTemplate], builtin[*resourcev1.ResourceClaim], builtin[*resourcev1.ResourceSlice],
	builtin[*resourcev1alpha3.DeviceTaintRule], builtin[*resourcev1alpha3.ResourcePoolStatusRequest],
	builtin[*resourcev1beta1.DeviceClass], builtin[*resourcev1beta1.ResourceClaimTemplate], builtin[*resourcev1beta1.ResourceClaim],
	builtin[*resourcev1beta1.ResourceSlice],
	builtin[*resourcev1beta2.DeviceClass], builtin[*resourcev1beta2.DeviceTaintRule], builtin[*resourcev1beta2.ResourceClaimTemplate],
	builtin[*resourcev1beta2.ResourceClaim], builtin[*resourcev1beta2.ResourceSlice],
	builtin[*schedulingv1.PriorityClass],
	builtin[*storagev1.CSIDriver], builtin[*storagev1.CSINode], builtin[*storagev1.CSIStorageCapacity], builtin[*storagev1.StorageClass],
	builtin[*storagev1.VolumeAttachment], builtin[*storagev1.VolumeAttributesClass],
	builtin[*storagev1beta1.VolumeAttributesClass],
}

// opened is an informer without its type parameter.
type opened struct {
	source *informer.Source
	state  func() map[informer.Key]version
}

func builtin[T informer.Object](c *informer.Cluster) (opened, error) {
	i, err := informer.For[T](c)
	if err != nil {
		return opened{}, err
	}
	return opened{i.Source(), func() map[informer.Key]version { return versions(readable(i.All())) }}, nil
}

// TestBuiltinKinds checks that For finds the resource of every built-in kind by its Go type, and reads them
// all.
func TestBuiltinKinds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*recovery)
	defer cancel()
	r := here.open(t, informer.Options{}, nil)
	guessed := map[schema.GroupVersionResource]opened{}
	for _, open := range builtins {
		o := must(open(r.Cluster))(t)
		guessed[o.source.Status()[0].Stream.Resource] = o
	}
	served := must(here.builtin())(t)
	for gvr := range served {
		if _, ok := guessed[gvr]; !ok {
			t.Errorf("no type's resource is %v, of kind %s", gvr, served[gvr])
		}
	}
	for gvr := range guessed {
		if _, ok := served[gvr]; !ok {
			t.Errorf("a type's resource is %v, which is not served", gvr)
		}
	}
	if t.Failed() {
		return
	}
	r.start(t)
	if err := r.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for _, gvr := range slices.SortedFunc(maps.Keys(guessed), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	}) {
		o := guessed[gvr]
		// Some of them, such as leases, are written all the time.
		if err := clustertest.Poll(ctx, 50*time.Millisecond, func() error { return here.same(ctx, gvr, o.state()) }); err != nil {
			t.Errorf("%v: %v", gvr, err)
		}
		for _, st := range o.source.Status() {
			if st.DecodeErrors+st.LossyDecodes+st.Dropped.Unreadable > 0 {
				t.Errorf("%v: %+v", gvr, st)
			}
		}
	}
}

// builtin returns the watchable kinds of the server for which client-go has a type.
func (w *world) builtin() (map[schema.GroupVersionResource]string, error) {
	_, lists, err := w.client.Discovery().ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("discover kinds: %w", err)
	}
	out := map[schema.GroupVersionResource]string{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discover kinds: %w", err)
		}
		for _, r := range l.APIResources {
			whole := !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
			if whole && scheme.Scheme.Recognizes(gv.WithKind(r.Kind)) {
				out[gv.WithResource(r.Name)] = r.Kind
			}
		}
	}
	return out, nil
}

// same returns an error if a state differs from a fresh list.
func (w *world) same(ctx context.Context, gvr schema.GroupVersionResource, got map[informer.Key]version) error {
	list, err := w.meta.Resource(gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return differ(got, versions(slices.Values(pointers(list.Items))))
}
