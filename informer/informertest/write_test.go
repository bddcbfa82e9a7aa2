package informertest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// clients are client-go's typed clients of a server with deployments, pods and config maps.
type clients struct {
	*testing.T
	server *informertest.Server
	core   coreclient.CoreV1Interface
	apps   appsclient.AppsV1Interface
}

// byTypedClients runs a test with JSON clients and with protobuf clients.
func byTypedClients(t *testing.T, test func(*clients)) {
	t.Helper()
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := informertest.NewServer()
				s.Serve(pods, "Pod")
				s.Serve(deployments, "Deployment")
				s.Serve(configMaps, "ConfigMap")
				cfg := s.Config()
				cfg.ContentType, cfg.AcceptContentTypes, cfg.QPS = contentType, contentType+","+runtime.ContentTypeJSON, -1
				core, err := coreclient.NewForConfig(cfg)
				if err != nil {
					t.Fatal(err)
				}
				apps, err := appsclient.NewForConfig(cfg)
				if err != nil {
					t.Fatal(err)
				}
				test(&clients{t, s, core, apps})
			})
		})
	}
}

// must returns a value whose error must be nil.
func must[T any](v T, err error) func(*clients) T {
	return func(c *clients) T {
		c.Helper()
		if err != nil {
			c.Fatal(err)
		}
		return v
	}
}

// want compares a value.
func (c *clients) want(what string, got, want any) {
	c.Helper()
	if got != want {
		c.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// refused checks an error and its message.
func (c *clients) refused(what string, err error, is func(error) bool, says string) {
	c.Helper()
	if err == nil || !is(err) || !strings.Contains(err.Error(), says) {
		c.Errorf("%s: %v, want one that says %q", what, err, says)
	}
}

func web(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: template("one", "two")},
	}
}

func template(containers ...string) (t corev1.PodTemplateSpec) {
	for _, name := range containers {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: name, Image: name + ":1"})
	}
	return t
}

func TestCreate(t *testing.T) {
	byTypedClients(t, func(c *clients) {
		ctx, all := c.Context(), c.apps.Deployments("shop")
		sent := web(2)
		sent.UID, sent.Generation, sent.Status.Replicas = "mine", 7, 9
		d := must(all.Create(ctx, sent, metav1.CreateOptions{}))(c)
		c.want("version", d.ResourceVersion, "1001")
		c.want("namespace", d.Namespace, "shop")
		c.want("UID", string(d.UID), "uid-1")
		c.want("generation", d.Generation, int64(1))
		c.want("status", d.Status.Replicas, int32(0))
		c.want("replicas", *d.Spec.Replicas, int32(2))
		c.want("created", d.CreationTimestamp.Time.Equal(time.Now()), true)
		c.want("read again", must(all.Get(ctx, "web", metav1.GetOptions{}))(c).String(), d.String())

		_, err := all.Create(ctx, web(1), metav1.CreateOptions{})
		c.refused("again", err, apierrors.IsAlreadyExists, `deployments.apps "web" already exists`)
		nameless := web(1)
		nameless.Name = ""
		_, err = all.Create(ctx, nameless, metav1.CreateOptions{})
		c.refused("without a name", err, apierrors.IsInvalid, "name or generateName is required")
		elsewhere := web(1)
		elsewhere.Namespace = "other"
		_, err = all.Create(ctx, elsewhere, metav1.CreateOptions{})
		c.refused("into another namespace", err, apierrors.IsBadRequest, "does not match the namespace")
		versioned := web(1)
		versioned.Name, versioned.ResourceVersion = "other", "5"
		_, err = all.Create(ctx, versioned, metav1.CreateOptions{})
		c.refused("with a version", err, func(error) bool { return true }, "resourceVersion should not be set")

		names := map[string]bool{}
		for range 3 {
			p := must(c.core.Pods("shop").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}, metav1.CreateOptions{}))(c)
			names[p.Name] = strings.HasPrefix(p.Name, "web-") && len(p.Name) == len("web-12345")
			names[string(p.UID)] = true
		}
		c.want("names and UIDs", len(names), 6)
		c.want("a config map has no generation", must(c.core.ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}))(c).Generation, int64(0))
		c.want("version, in the end", c.server.Version(), "1005")
	})
}

func TestUpdate(t *testing.T) {
	byTypedClients(t, func(c *clients) {
		ctx, all := c.Context(), c.apps.Deployments("shop")
		first := must(all.Create(ctx, web(1), metav1.CreateOptions{}))(c)

		d := first.DeepCopy()
		*d.Spec.Replicas, d.Status.Replicas, d.Generation, d.CreationTimestamp = 2, 5, 99, metav1.Time{}
		d = must(all.Update(ctx, d, metav1.UpdateOptions{}))(c)
		c.want("version", d.ResourceVersion, "1002")
		c.want("generation after a change of the spec", d.Generation, int64(2))
		c.want("status after a write of the main resource", d.Status.Replicas, int32(0))
		c.want("creation", d.CreationTimestamp.Time.Equal(first.CreationTimestamp.Time), true)

		_, err := all.Update(ctx, first, metav1.UpdateOptions{})
		c.refused("from a stale version", err, apierrors.IsConflict, "the object has been modified; please apply your changes to the latest version")
		_, err = all.UpdateStatus(ctx, first, metav1.UpdateOptions{})
		c.refused("the status, from a stale version", err, apierrors.IsConflict, "the object has been modified")
		other := d.DeepCopy()
		other.UID = "other"
		_, err = all.Update(ctx, other, metav1.UpdateOptions{})
		c.refused("of another object", err, apierrors.IsConflict, "Precondition failed: UID in precondition: other, UID in object meta: uid-1")

		d.Labels = map[string]string{"a": "b"}
		d = must(all.Update(ctx, d, metav1.UpdateOptions{}))(c)
		c.want("generation after a change of labels", d.Generation, int64(2))
		c.want("an update without a change", must(all.Update(ctx, d, metav1.UpdateOptions{}))(c).ResourceVersion, "1003")

		d.Status.Replicas, *d.Spec.Replicas, d.Labels = 2, 50, nil
		d = must(all.UpdateStatus(ctx, d, metav1.UpdateOptions{}))(c)
		c.want("status after a write of it", d.Status.Replicas, int32(2))
		c.want("what else was sent", *d.Spec.Replicas, int32(2))
		c.want("labels", d.Labels["a"], "b")
		c.want("generation after a change of the status", d.Generation, int64(2))

		d.ResourceVersion = ""
		*d.Spec.Replicas = 3
		c.want("without a version", *must(all.Update(ctx, d, metav1.UpdateOptions{}))(c).Spec.Replicas, int32(3))
		d.Name = "none"
		_, err = all.Update(ctx, d, metav1.UpdateOptions{})
		c.refused("of a missing object", err, apierrors.IsNotFound, `deployments.apps "none" not found`)
	})
}

func TestPatch(t *testing.T) {
	byTypedClients(t, func(c *clients) {
		ctx, all := c.Context(), c.apps.Deployments("shop")
		must(all.Create(ctx, web(1), metav1.CreateOptions{}))(c)
		patch := func(how types.PatchType, text string, sub ...string) (*appsv1.Deployment, error) {
			return all.Patch(ctx, "web", how, []byte(text), metav1.PatchOptions{}, sub...)
		}
		d := must(patch(types.MergePatchType, `{"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"replicas":4},"status":{"replicas":7}}`))(c)
		c.want("merged", *d.Spec.Replicas, int32(4))
		c.want("status", d.Status.Replicas, int32(0))
		c.want("generation", d.Generation, int64(2))
		d = must(patch(types.MergePatchType, `{"metadata":{"labels":{"a":null}}}`))(c)
		c.want("labels that are left", len(d.Labels), 1)
		d = must(patch(types.MergePatchType, `{"status":{"replicas":7},"spec":{"replicas":8}}`, "status"))(c)
		c.want("the status", d.Status.Replicas, int32(7))
		c.want("the spec, after a patch of the status", *d.Spec.Replicas, int32(4))
		d = must(patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":4},{"op":"replace","path":"/spec/replicas","value":5}]`))(c)
		c.want("by operations", *d.Spec.Replicas, int32(5))
		d = must(patch(types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"two","image":"two:2"}]}}}}`))(c)
		c.want("containers, merged by name", len(d.Spec.Template.Spec.Containers), 2)
		version := d.ResourceVersion
		c.want("a patch that changes nothing", must(patch(types.MergePatchType, `{}`))(c).ResourceVersion, version)

		_, err := patch(types.MergePatchType, `{"metadata":{"resourceVersion":"1001"},"spec":{"replicas":9}}`)
		c.refused("from a stale version", err, apierrors.IsConflict, "the object has been modified")
		_, err = patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":4}]`)
		c.refused("an operation that fails", err, apierrors.IsInvalid, "")
		_, err = patch(types.JSONPatchType, `{}`)
		c.refused("an invalid patch", err, apierrors.IsBadRequest, "")
		_, err = patch(types.MergePatchType, `{"spec":{"replicas":"many"}}`)
		c.refused("not a deployment", err, apierrors.IsBadRequest, "")
		_, err = patch(types.ApplyPatchType, `{}`)
		c.refused("apply", err, apierrors.IsUnsupportedMediaType, "server-side apply")
		_, err = all.Patch(ctx, "none", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		c.refused("of a missing object", err, apierrors.IsNotFound, "")
	})
}

func TestDelete(t *testing.T) {
	byTypedClients(t, func(c *clients) {
		ctx, all := c.Context(), c.core.Pods("shop")
		create := func(name string, finalizers ...string) *corev1.Pod {
			return must(all.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}, metav1.CreateOptions{}))(c)
		}
		p := create("a")
		uid, version := types.UID("other"), "7"
		err := all.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		c.refused("another UID", err, apierrors.IsConflict, "UID in precondition: other")
		err = all.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
		c.refused("another version", err, apierrors.IsConflict, "ResourceVersion in precondition: 7")
		must(0, all.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion}}))(c)
		c.refused("again", all.Delete(ctx, "a", metav1.DeleteOptions{}), apierrors.IsNotFound, `pods "a" not found`)
		c.want("version", c.server.Version(), "1002")

		create("b", "x/one", "x/two")
		must(0, all.Delete(ctx, "b", metav1.DeleteOptions{}))(c)
		b := must(all.Get(ctx, "b", metav1.GetOptions{}))(c)
		c.want("marked", b.DeletionTimestamp != nil && *b.DeletionGracePeriodSeconds == 0, true)
		must(0, all.Delete(ctx, "b", metav1.DeleteOptions{}))(c)
		c.want("marked once", must(all.Get(ctx, "b", metav1.GetOptions{}))(c).ResourceVersion, b.ResourceVersion)
		b.DeletionTimestamp, b.Finalizers = nil, []string{"x/one"}
		b = must(all.Update(ctx, b, metav1.UpdateOptions{}))(c)
		c.want("still marked", b.DeletionTimestamp != nil, true)
		more := b.DeepCopy()
		more.Finalizers = append(more.Finalizers, "x/three")
		_, err = all.Update(ctx, more, metav1.UpdateOptions{})
		c.refused("another finalizer", err, apierrors.IsInvalid, "no new finalizers can be added")
		b.Finalizers = nil
		must(all.Update(ctx, b, metav1.UpdateOptions{}))(c)
		_, err = all.Get(ctx, "b", metav1.GetOptions{})
		c.refused("after its last finalizer", err, apierrors.IsNotFound, "")
		c.want("a watch", events(c.T, c.server, "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=1002", ""),
			"A b 1003, M b 1004, M b 1005, D b 1006")
	})
}

func TestDryRun(t *testing.T) {
	byTypedClients(t, func(c *clients) {
		ctx, all, dry := c.Context(), c.apps.Deployments("shop"), []string{metav1.DryRunAll}
		d := must(all.Create(ctx, web(1), metav1.CreateOptions{DryRun: dry}))(c)
		c.want("a dry-run result has no version", d.ResourceVersion, "")
		c.want("but a generation", d.Generation, int64(1))
		d = must(all.Create(ctx, web(1), metav1.CreateOptions{}))(c)
		*d.Spec.Replicas = 2
		c.want("the dry-run result", *must(all.Update(ctx, d, metav1.UpdateOptions{DryRun: dry}))(c).Spec.Replicas, int32(2))
		must(all.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{DryRun: dry}))(c)
		must(0, all.Delete(ctx, "web", metav1.DeleteOptions{DryRun: dry}))(c)
		c.want("what is", *must(all.Get(ctx, "web", metav1.GetOptions{}))(c).Spec.Replicas, int32(1))
		c.want("version", c.server.Version(), "1001")
		_, err := all.Update(ctx, d, metav1.UpdateOptions{DryRun: []string{"Some"}})
		c.refused("another stage", err, apierrors.IsInvalid, "dryRun")
	})
}

// TestWriteFaults: writes fail on request, before or after they are carried out.
func TestWriteFaults(t *testing.T) {
	byTypedClients(t, func(c *clients) {
		all := c.core.ConfigMaps("shop")
		create := func(name string) error {
			ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
			defer cancel()
			_, err := all.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		}
		c.server.Misbehave(fault{On: informertest.Writes, Code: 500, Times: 1})
		c.refused("500", create("a"), apierrors.IsInternalError, "")
		c.want("objects", len(c.server.Objects(configMaps)), 0)
		c.server.Misbehave(fault{On: informertest.Writes, Effect: informertest.CutFrame, Times: 1})
		if create("a") == nil {
			c.Error("the cut response caused no error")
		}
		c.want("objects, although the response was lost", len(c.server.Objects(configMaps)), 1)
		c.refused("again", create("a"), apierrors.IsAlreadyExists, "")
		for _, r := range c.server.Recorded() {
			c.want("the request", r.Method+" "+r.Path, "POST /api/v1/namespaces/shop/configmaps")
		}
	})
}
