package examples

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// address waits until a program that serves HTTP has printed where.
func (p *process) address(t *testing.T) string {
	t.Helper()
	p.prints(t, "address=")
	return regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(p.out.String())[1]
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	resp, err := http.Get(url) //nolint:gosec,noctx // a loopback address
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestPodByIP(t *testing.T) {
	t.Parallel()
	defer http.DefaultClient.CloseIdleConnections()
	ns := namespace(t, "by-ip")
	host := func(name, node string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec: {hostNetwork: true, nodeName: %s, containers: [{name: c, image: i}]}\n", name, ns, node)
	}
	serviceAccount(t, ns)
	kubectl(t, "apply", "-f", manifest(t, host("one", "node-0")+host("two", "node-0")+
		fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: %s}\nspec: {ports: [{port: 80}]}\n", ns)))
	away := newLine(t)
	may := away.kubeconfig(t, rights(t, "pod-by-ip"))
	p := start(t, "pod-by-ip", may, "--listen", "127.0.0.1:0")
	url := "http://" + p.address(t) + "/"

	ip := func(args ...string) (found string) {
		t.Helper()
		eventually(t, func() error {
			if found = kubectl(t, append([]string{"get", "-o"}, args...)...); found == "" {
				return fmt.Errorf("%v: no address", args)
			}
			return nil
		})
		return found
	}
	holds := func(address string, want string) {
		t.Helper()
		eventually(t, func() error {
			code, body := get(t, url+address)
			var answer map[string][]struct{ Namespace, Name string }
			if err := json.Unmarshal([]byte(body), &answer); code != http.StatusOK || err != nil {
				return fmt.Errorf("%d %s: %w", code, body, err)
			}
			var got []string
			for _, kind := range []string{"pods", "services", "nodes"} {
				for _, o := range answer[kind] {
					if o.Namespace == ns || kind == "nodes" {
						got = append(got, o.Name)
					}
				}
			}
			if fmt.Sprint(got) != want && fmt.Sprint(got) != strings.Replace(want, "one two", "two one", 1) {
				return fmt.Errorf("%s has %v, want %s", address, got, want)
			}
			return nil
		})
	}
	// The nodes of this control plane share an address.
	nodeIP := ip(`jsonpath={.status.addresses[0].address}`, "node", "node-0")
	holds(ip(`jsonpath={.status.podIP}`, "pod", "one", "-n", ns), "[one two node-0 node-1]")
	holds(nodeIP, "[one two node-0 node-1]")
	holds(ip(`jsonpath={.spec.clusterIP}`, "service", "web", "-n", ns), "[web]")
	away.cut() // it answers from what it knows
	kubectl(t, "delete", "pod", "one", "-n", ns, "--now")
	holds(nodeIP, "[one two node-0 node-1]")
	away.mend()
	holds(nodeIP, "[two node-0 node-1]")
	holds("::ffff:"+nodeIP, "[two node-0 node-1]")
	holds("192.0.2.1", "[]")
	if code, body := get(t, url+"nonsense"); code != http.StatusBadRequest || !strings.Contains(body, "is not an IP address") {
		t.Errorf("%d %s", code, body)
	}
	taken := fails(t, command("pod-by-ip", cluster.Kubeconfig(), "--listen", strings.Trim(strings.TrimPrefix(url, "http://"), "/")), 1)
	if !strings.Contains(taken, "address already in use") || !strings.Contains(taken, "--listen") {
		t.Error(taken)
	}
	p.stop(t)
	p = start(t, "pod-by-ip", may, "--listen", "127.0.0.1:0")
	url = "http://" + p.address(t) + "/"
	holds(nodeIP, "[two node-0 node-1]")
	p.stop(t)
}
