package examples

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tattler-dev/tattler/informer"
)

// arrives waits until the messages about the ConfigMaps of a namespace are these: op, kind, name and the value of the key a before and after.
func arrives(t *testing.T, b *broker, namespace string, want ...string) []published {
	t.Helper()
	var got []published
	value := func(object map[string]any) any {
		data, _ := object["data"].(map[string]any)
		return data["a"]
	}
	eventually(t, func() (err error) {
		if got, err = b.stored(t, "CHANGES", namespace); err != nil {
			return err
		}
		var lines []string
		for _, p := range got {
			if p.Kind != "configmaps" || strings.HasSuffix(p.Key, "/kube-root-ca.crt") {
				continue // between kinds there is no order
			}
			lines = append(lines, fmt.Sprintf("%s %s %s %v>%v", p.Op, p.Kind, strings.TrimPrefix(p.Key, namespace+"/"), value(p.Old), value(p.New)))
		}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			return fmt.Errorf("published:\n%s\nwant:\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
	return got
}

// setA creates or updates a ConfigMap with a value of the key a.
func setA(t *testing.T, namespace, name string, value int) {
	t.Helper()
	kubectl(t, "apply", "--server-side", "-f", manifest(t, fmt.Sprintf(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {a: \"%d\"}\n", name, namespace, value)))
}

// saved waits until the checkpoint of a kind has what an object is now.
func saved(t *testing.T, dir, kind, namespace, name string) {
	t.Helper()
	version := kubectl(t, "get", kind, name, "-n", namespace, "-o", "jsonpath={.metadata.resourceVersion}")
	eventually(t, func() error {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			return err
		}
		seen := []string{}
		for _, file := range files {
			r, err := informer.VerifyCheckpoint(file)
			if err != nil || filepath.Ext(file) == ".new" || !strings.HasPrefix(r.Stream, kind+" ") { // a .new file does not count after a kill
				continue
			}
			if len(r.Head.Version) > len(version) || len(r.Head.Version) == len(version) && r.Head.Version >= version {
				return nil
			}
			seen = append(seen, r.Head.Version)
		}
		return fmt.Errorf("the checkpoint is at %q, not at %s", seen, version)
	})
}

func TestChangeBus(t *testing.T) {
	t.Parallel()
	may, b, ns, dir := rights(t, "change-bus"), newBroker(t), namespace(t, "bus"), t.TempDir()
	setA(t, ns, "there", 1)
	kubectl(t, "create", "secret", "generic", "s", "-n", ns)
	args := []string{"--kinds", "configmaps,deployments.apps", "--nats", b.url, "--checkpoint", dir}
	p := start(t, "change-bus", may, args...)
	p.prints(t, "publishing kinds=2")

	// Each change once, and those of an object in order.
	setA(t, ns, "there", 2)
	setA(t, ns, "new", 1)
	setA(t, ns, "new", 2)
	kubectl(t, "delete", "configmap", "new", "-n", ns)
	kubectl(t, "delete", "secret", "s", "-n", ns)
	want := []string{"updated configmaps there 1>2", "added configmaps new <nil>>1", "updated configmaps new 1>2", "deleted configmaps new 2><nil>"}
	for _, m := range arrives(t, b, ns, want...) {
		if m.subject != "changes."+ns+".configmaps" || m.id == "" || (m.Op == "deleted") != (m.ResourceVersion == "") {
			t.Errorf("%+v", m)
		}
	}

	// NATS is killed, and comes back.
	b.kill(t)
	setA(t, ns, "there", 3)
	setA(t, ns, "there", 4)
	kubectl(t, "create", "deployment", "web", "--image=a", "--replicas=0", "-n", ns)
	p.prints(t, "disconnected from NATS")
	p.prints(t, "not stored; trying again until it is kind=configmaps")
	b.again(t)
	want = append(want, "updated configmaps there 2>3", "updated configmaps there 3>4")
	arrives(t, b, ns, want...)
	p.prints(t, "connected to NATS again")
	eventually(t, func() error {
		all, err := b.stored(t, "CHANGES", ns)
		if err == nil && !strings.Contains(fmt.Sprint(all), "added deployments.apps "+ns+"/web") {
			err = fmt.Errorf("no Deployment was published: %v", all)
		}
		return err
	})

	// It is killed, and changes happen until it is there again.
	saved(t, dir, "configmaps", ns, "there")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; err == nil {
		t.Error("it was not killed")
	}
	setA(t, ns, "there", 5)
	setA(t, ns, "later", 1)
	again := start(t, "change-bus", may, args...)
	again.prints(t, "publishing")
	kubectl(t, "delete", "configmap", "there", "-n", ns)
	want = append(want, "updated configmaps there 4>5", "added configmaps later <nil>>1", "deleted configmaps there 5><nil>")
	arrives(t, b, ns, want...)

	// It is asked to end while NATS is away: what it has seen is published once NATS is back.
	b.kill(t)
	setA(t, ns, "later", 2)
	setA(t, ns, "later", 3)
	again.prints(t, "not stored; trying again until it is kind=configmaps")
	saved(t, dir, "configmaps", ns, "later")
	if err := again.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	b.again(t)
	if err := <-again.done; err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	want = append(want, "updated configmaps later 1>2", "updated configmaps later 2>3")
	arrives(t, b, ns, want...)
	kubectl(t, "delete", "configmap", "later", "-n", ns)
	last := start(t, "change-bus", may, args...)
	want = append(want, "deleted configmaps later 3><nil>")
	arrives(t, b, ns, want...)

	// What is larger than NATS takes comes without the objects, and holds up nothing.
	large := strings.Repeat("x", 900_000)
	kubectl(t, "create", "-f", manifest(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large, namespace: %s}\ndata: {a: one, b: %s}\n", ns, large)))
	kubectl(t, "patch", "configmap", "large", "-n", ns, "-p", `{"data":{"a":"two"}}`)
	setA(t, ns, "small", 1)
	arrives(t, b, ns, append(want, "added configmaps large <nil>>one", "updated configmaps large <nil>><nil>", "added configmaps small <nil>>1")...)
	last.stop(t)
}

// TestChangeBusSecrets: Secrets are published where they are named.
func TestChangeBusSecrets(t *testing.T) {
	t.Parallel()
	ns, b := namespace(t, "bus"), newBroker(t)
	p := start(t, "change-bus", cluster.Kubeconfig(), "--kinds", "secrets", "--nats", b.url)
	p.prints(t, "publishing")
	kubectl(t, "create", "secret", "generic", "s", "--from-literal=a=b", "-n", ns)
	eventually(t, func() error {
		all, err := b.stored(t, "CHANGES", ns)
		if err == nil && !strings.Contains(fmt.Sprint(all), "added secrets "+ns+"/s") {
			err = fmt.Errorf("it has published %v", all)
		}
		return err
	})
	p.stop(t)
}

// TestChangeBusRefused: what cannot work is said in one line.
func TestChangeBusRefused(t *testing.T) {
	t.Parallel()
	may := rights(t, "change-bus")
	const nobody = "127.0.0.1:1" // a port that no neighbour is given
	plain := newBroker(t)
	for _, tc := range []struct {
		why, kubeconfig string
		args            []string
		code            int
		want            []string
	}{
		{"nobody listens", may, []string{"--kinds", "configmaps", "--nats", "nats://user:w0rd@" + nobody}, 1, []string{"connect to NATS: ", "start it", "--nats"}},
		{"not all rights", may, []string{"--kinds", "configmaps,pods", "--nats", plain.url}, 1, []string{"pods is forbidden", "manifest.yaml"}},
		{"no such kind", may, []string{"--kinds", "configmaps,pots"}, 2, []string{`no kind "pots"`, "kubectl api-resources"}},
		{"no kind", may, nil, 2, []string{`no kind ""`, "--kinds pods"}},
	} {
		line := fails(t, command("change-bus", tc.kubeconfig, tc.args...), tc.code)
		for _, want := range tc.want {
			if !strings.Contains(line, want) || strings.Contains(line, "w0rd") {
				t.Errorf("%s: %q, want %q", tc.why, line, want)
			}
		}
	}
}
