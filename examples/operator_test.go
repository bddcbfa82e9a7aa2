package examples

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// operatorRights installs the operator's kind and its rights.
func operatorRights(t *testing.T) string {
	t.Helper()
	may := rights(t, "operator")
	kubectl(t, "wait", "--timeout=2m", "--for=condition=Established", "crd/sites.examples.tattler.dev")
	eventually(t, func() error { // it is established before it is served, and before kubectl finds it
		_, err := cluster.Kubectl(t.Context(), "get", "sites", "-A")
		return err
	})
	return may
}

// operatorCommand is the operator with a cache.
func operatorCommand(kubeconfig, cache, namespace string) *exec.Cmd {
	cmd := command("operator", kubeconfig, "--namespace", namespace, "--directory", namespace+"/directory")
	cmd.Env = append(cmd.Env, "CACHE="+cache)
	return cmd
}

// site writes a Site.
func site(t *testing.T, namespace, image, config string) {
	t.Helper()
	kubectl(t, "apply", "-f", manifest(t, fmt.Sprintf(`apiVersion: examples.tattler.dev/v1
kind: Site
metadata: {name: a, namespace: %s}
spec: {image: %q, replicas: 2, config: %q}
`, namespace, image, config)))
}

// has waits until an object has a value.
func has(t *testing.T, namespace, object, path, want string) {
	t.Helper()
	eventually(t, func() error {
		got, err := cluster.Kubectl(t.Context(), "get", object, "-n", namespace, "-o", "jsonpath="+path)
		if err == nil && got != want {
			err = fmt.Errorf("%s of %s is %q, want %q", path, object, got, want)
		}
		return err
	})
}

const (
	siteReady = `{.status.conditions[?(@.type=="Ready")].reason}`
	siteImage = `{.spec.template.spec.containers[0].image}`
)

// TestOperator: with its cache and with ours, the operator does the same.
func TestOperator(t *testing.T) {
	t.Parallel()
	may := operatorRights(t)
	for _, cache := range []string{"", "controller-runtime"} {
		t.Run("cache "+cache, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t, "operator")
			serviceAccount(t, ns)
			away := newLine(t)
			p := launch(t, operatorCommand(away.kubeconfig(t, may), cache, ns))
			site(t, ns, "a:1", "settings")
			has(t, ns, "site/a", siteReady, "NoConfig")
			kubectl(t, "create", "configmap", "settings", "--from-literal=x=1", "-n", ns)
			has(t, ns, "site/a", siteReady, "Available")
			has(t, ns, "deployment/a", siteImage+" {.spec.replicas} {.spec.selector.matchLabels.site} {.spec.template.spec.containers[0].envFrom[0].configMapRef.name} {.metadata.ownerReferences[0].kind}", "a:1 2 a settings Site")
			has(t, ns, "service/a", "{.spec.ports[0].port} {.spec.ports[0].targetPort} {.spec.selector.site} {.metadata.ownerReferences[0].kind}", "80 8080 a Site")
			has(t, ns, "configmap/directory", "{.data}", fmt.Sprintf(`{"%s.a":"a.%[1]s.svc"}`, ns))
			const hash = `{.spec.template.metadata.annotations.examples\.tattler\.dev/config}`
			has(t, ns, "deployment/a", hash, "013bdcb2b4d38b7d")
			kubectl(t, "patch", "configmap", "settings", "-n", ns, "-p", `{"data":{"x":"2"}}`)
			has(t, ns, "deployment/a", hash, "17deda9ec2ab3355")

			// What it owns and somebody else deletes or changes.
			kubectl(t, "delete", "service", "a", "-n", ns)
			has(t, ns, "service/a", "{.spec.selector.site}", "a")
			kubectl(t, "set", "image", "deployment/a", "site=by:hand", "-n", ns)
			has(t, ns, "deployment/a", siteImage, "a:1")
			fights(t, ns, p, "somebody else wrote first")

			away.cut()
			site(t, ns, "a:away", "settings")
			kubectl(t, "delete", "service", "a", "-n", ns)
			away.mend()
			has(t, ns, "deployment/a", siteImage, "a:away")
			has(t, ns, "service/a", "{.spec.selector.site}", "a")
			p.stop(t)

			site(t, ns, "a:2", "") // while nobody runs
			p = launch(t, operatorCommand(may, cache, ns))
			if cache == "" {
				p.prints(t, `kept by our cache informer="SharedIndexInformer *main.Site" objects=1`)
				p.prints(t, `kept by our cache informer="SharedIndexInformer *v1.Deployment" objects=`)
			} else {
				p.prints(t, "the cache is controller-runtime's")
			}
			has(t, ns, "deployment/a", siteImage, "a:2")
			has(t, ns, "site/a", siteReady, "Available")
			kubectl(t, "delete", "site", "a", "-n", ns, "--timeout=2m") // the finalizer is taken away
			has(t, ns, "configmap/directory", "{.data}", "")
			eventually(t, func() error {
				if left := kubectl(t, "get", "deployments,services", "-n", ns, "-o", "name"); left != "" {
					return fmt.Errorf("it still has %s", left)
				}
				return nil
			})
			p.stop(t)
		})
	}
}

// fights has somebody else write the Deployment, while the Site changes all the time, until the operator has printed that
// it lost a race.
func fights(t *testing.T, ns string, p *process, lost string) {
	t.Helper()
	writes := 0
	api := client(t).AppsV1().Deployments(ns)
	eventually(t, func() error {
		var writers sync.WaitGroup
		from := writes
		writes += 150
		writers.Go(func() {
			for i := from; i < writes; i++ {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n%d":"yes"}}}`, i)
				if _, err := api.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
		for i := from; i < writes; i++ {
			patch := fmt.Appendf(nil, `{"spec":{"image":"a:n%d"}}`, i)
			err := client(t).RESTClient().Patch(types.MergePatchType).AbsPath("/apis/examples.tattler.dev/v1/namespaces/" + ns + "/sites/a").
				Body(patch).Do(t.Context()).Error()
			if err != nil {
				t.Error(err)
			}
		}
		writers.Wait()
		if !strings.Contains(p.out.String(), lost) {
			return errors.New("it did not print " + lost)
		}
		return nil
	})
	has(t, ns, "deployment/a", siteImage, fmt.Sprintf("a:n%d", writes-1))
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

// TestOperatorRights: a right to write that is missing is a failure that is tried again; one to read ends the operator.
func TestOperatorRights(t *testing.T) {
	t.Parallel()
	operatorRights(t)
	for _, cache := range []string{"", "controller-runtime"} {
		t.Run("cache "+cache, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t, "operator")
			reader := user(t, "reader-"+ns)
			if line := fails(t, operatorCommand(reader, cache, ns), 1); !strings.Contains(line, "forbidden") {
				t.Error(line)
			}
			kubectl(t, "create", "role", "reads", "--verb=list,watch", "--resource=sites.examples.tattler.dev,deployments.apps,services,configmaps", "-n", ns)
			kubectl(t, "create", "rolebinding", "reads", "--role=reads", "--user=reader-"+ns, "-n", ns)
			for resource, group := range map[string]string{"sites": "examples.tattler.dev", "deployments": "apps", "services": "", "configmaps": ""} {
				lists(t, "reader-"+ns, ns, group, resource)
			}
			p := launch(t, operatorCommand(reader, cache, ns))
			site(t, ns, "a:1", "")
			p.prints(t, `cannot update resource \"sites\"`)
			kubectl(t, "create", "rolebinding", "writes", "--clusterrole=operator", "--user=reader-"+ns, "-n", ns)
			has(t, ns, "deployment/a", siteImage, "a:1")
			kubectl(t, "delete", "site", "a", "-n", ns, "--timeout=2m")
			p.stop(t)
		})
	}
	if line := fails(t, command("operator", cluster.Kubeconfig(), "--directory", "a"), 2); !strings.Contains(line, "--directory") {
		t.Error(line)
	}
}
