package examples

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deployment makes a Deployment without replicas, whose image is old:1.
func deployment(t *testing.T, namespace, name, labels string) {
	t.Helper()
	kubectl(t, "create", "-f", manifest(t, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s, labels: {%s}}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: main, image: "old:1"}, {name: side, image: "side:1"}]}}
`, name, namespace, labels)))
}

// deploymentHas waits until a Deployment has an image and, in its annotation, a problem.
func deploymentHas(t *testing.T, namespace, name, image, problem string) {
	t.Helper()
	eventually(t, func() error {
		got, err := cluster.Kubectl(t.Context(), "get", "deployment", name, "-n", namespace, "-o",
			`jsonpath={.spec.template.spec.containers[*].image} {.metadata.annotations.image-setter/problem}`)
		if err == nil && (!strings.HasPrefix(got, image+" side:1 ") || !strings.Contains(got, problem) || problem == "" && !strings.HasSuffix(got, " ")) {
			err = fmt.Errorf("%s has %q, want %s and the problem %q", name, got, image, problem)
		}
		return err
	})
}

// configMap sets the value of the key web of the ConfigMap images.
func configMap(t *testing.T, namespace, image string) {
	t.Helper()
	kubectl(t, "apply", "-f", manifest(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: images, namespace: %s}\ndata: {web: %q}\n", namespace, image)))
}

func TestImageSetter(t *testing.T) {
	t.Parallel()
	may := rights(t, "image-setter")
	ns := namespace(t, "setter")
	deployment(t, ns, "a", ns+": web")
	deployment(t, ns, "b", "other: web")
	deployment(t, ns, "c", ns+": shop")
	args := []string{"--configmap", ns + "/images", "--label", ns}
	p := start(t, "image-setter", may, args...)
	p.prints(t, "synced label="+ns+" deployments=2")
	deploymentHas(t, ns, "a", "old:1", "there is no ConfigMap "+ns+"/images")
	configMap(t, ns, "new:1")
	deploymentHas(t, ns, "a", "new:1", "")
	deploymentHas(t, ns, "c", "old:1", `has no key "shop"`)
	eventually(t, func() error {
		got, err := cluster.Kubectl(t.Context(), "get", "events", "-n", ns, "-o", "jsonpath={range .items[*]}{.reason} {.involvedObject.name} {.message}{'\\n'}{end}")
		if err == nil && !strings.Contains(got, `NoImage c the ConfigMap `+ns+`/images has no key "shop"`) {
			err = fmt.Errorf("the events are %s", got)
		}
		return err
	})
	kubectl(t, "set", "image", "deployment/a", "main=by:hand", "-n", ns)
	deploymentHas(t, ns, "a", "new:1", "")
	configMap(t, ns, "new:2")
	deploymentHas(t, ns, "a", "new:2", "")

	kubectl(t, "label", "deployment", "a", ns+"-", "-n", ns)
	kubectl(t, "label", "deployment", "b", ns+"=web", "-n", ns)
	deploymentHas(t, ns, "b", "new:2", "")
	configMap(t, ns, "new:3")
	deploymentHas(t, ns, "b", "new:3", "")
	deploymentHas(t, ns, "a", "new:2", "") // it has no label any more
	p.stop(t)
	if n := strings.Count(p.out.String(), "set image"); n != 5 {
		t.Errorf("it set images %d times, for 5 reasons:\n%s", n, p.out)
	}

	configMap(t, ns, "new:4") // while nobody runs
	again := start(t, "image-setter", may, args...)
	deploymentHas(t, ns, "b", "new:4", "")
	again.stop(t)
}

// TestImageSetterConflicts: two who write the same object all the time lose nothing.
func TestImageSetterConflicts(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "setter")
	deployment(t, ns, "a", ns+": web")
	configMap(t, ns, "new:0")
	start(t, "image-setter", rights(t, "image-setter"), "--configmap", ns+"/images", "--label", ns)
	deploymentHas(t, ns, "a", "new:0", "")
	before := conflicts(t)
	api, maps := client(t).AppsV1().Deployments(ns), client(t).CoreV1().ConfigMaps(ns)
	writes := 0
	eventually(t, func() error { // until they have met
		var writers sync.WaitGroup
		from := writes
		writes += 300
		writers.Go(func() {
			for i := from; i < writes; i++ {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n%d":"yes"}}}`, i)
				if _, err := api.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
		for i := from; i < writes; i++ {
			patch := fmt.Appendf(nil, `{"data":{"web":"new:%d"}}`, i)
			if _, err := maps.Patch(t.Context(), "images", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}
		writers.Wait()
		if conflicts(t) == before {
			return errors.New("there was no conflict: this has tested nothing")
		}
		return nil
	})
	deploymentHas(t, ns, "a", fmt.Sprintf("new:%d", writes-1), "")
	d, err := api.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range writes {
		if d.Annotations[fmt.Sprintf("n%d", i)] != "yes" {
			t.Errorf("annotation %d is lost", i)
		}
	}
}

// conflicts is how many updates of Deployments the API server has refused with 409.
func conflicts(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(regexp.MustCompile(`(?m)^apiserver_request_total\{code="409",.*resource="deployments",.*verb="PUT".*$`).
		FindAllString(kubectl(t, "get", "--raw", "/metrics"), -1))
}

// TestImageSetterRights: a right that is missing is an error for each object, and all is well once it is given.
func TestImageSetterRights(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "setter")
	reader := user(t, "reader-"+ns)
	kubectl(t, "create", "clusterrole", ns, "--verb=get,list,watch", "--resource=deployments.apps")
	t.Cleanup(func() { remove(t, "clusterrole", ns) })
	kubectl(t, "create", "clusterrolebinding", ns, "--clusterrole="+ns, "--user=reader-"+ns)
	t.Cleanup(func() { remove(t, "clusterrolebinding", ns) })
	lists(t, "reader-"+ns, "", "apps", "deployments")
	deployment(t, ns, "a", ns+": web")
	p := start(t, "image-setter", reader, "--image", "new:1", "--label", ns, "--every", "1s")
	p.prints(t, "forbidden")
	kubectl(t, "create", "rolebinding", "may", "--clusterrole=edit", "--user=reader-"+ns, "-n", ns)
	deploymentHas(t, ns, "a", "new:1", "")
	p.stop(t)
}

// TestImageSetterAway: while the source does not answer nothing is touched.
func TestImageSetterAway(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "setter")
	deployment(t, ns, "a", ns+": web")
	var code atomic.Int32
	code.Store(http.StatusInternalServerError)
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(int(code.Load()))
		fmt.Fprintf(w, "from-http%s:1", strings.ReplaceAll(r.URL.Path, "/", "-"))
	}))
	t.Cleanup(source.Close)
	const nobody = "127.0.0.1:1" // a port that no neighbour is given

	args := []string{"--label", ns, "--every", "300ms", "--url"}
	p := start(t, "image-setter", rights(t, "image-setter"), append(args, "http://"+nobody)...)
	deploymentHas(t, ns, "a", "old:1", "the source of images does not answer")
	p.prints(t, "connection refused")
	p.stop(t)
	p = start(t, "image-setter", cluster.Kubeconfig(), append(args, source.URL)...)
	p.prints(t, "500")
	deploymentHas(t, ns, "a", "old:1", "the source of images does not answer")
	code.Store(http.StatusNotFound)
	deploymentHas(t, ns, "a", "old:1", "/web has nothing: 404")
	code.Store(http.StatusOK)
	deploymentHas(t, ns, "a", "from-http-web:1", "")
	p.stop(t)

	for _, bad := range [][]string{{}, {"--image", "a", "--url", "http://b"}, {"--url", "b"}, {"--configmap", "images"}, {"--image", "a", "--label", "a b"}, {"--image", "a", "--every", "0s"}, {"--image", "a b"}, {"--configmap", "a/b/c"}} {
		if line := fails(t, command("image-setter", cluster.Kubeconfig(), bad...), 2); !strings.Contains(line, "--") {
			t.Errorf("%v: %s", bad, line)
		}
	}
}
