//go:build unix && !darwin

// On macOS, Go does not take the CA of the fake Slack from SSL_CERT_FILE.

package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/bus"
)

// webhookSecret is the secret part of Slack's URL.
const webhookSecret = "T0123ABCD/B0456EFGH/s3cr3tS3cr3tS3cr3t"

// TestToBusAndChat runs the documented command that delivers to NATS and to Slack. The daemon is killed and
// started again. Then each change must be on the bus once, in order, and in a Slack message.
func TestToBusAndChat(t *testing.T) {
	nats, err := bus.Start(filepath.Join(t.TempDir(), "nats"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nats.Close)
	chat := newSlack(t)
	r := newUser(t, chat.env)
	ns := fmt.Sprintf("bus%d-%d", os.Getpid(), namespaces.Add(1))
	r.kubectl(t, "create", "namespace", ns)
	t.Cleanup(func() { r.kubectl(t, "delete", "namespace", ns, "--wait=false") })
	command := fmt.Sprintf("tattler run deploy -n %s --to '%s' --to 'https://%s/services/%s'", ns, nats.Address("changes"), slackHost, webhookSecret)

	one := r.start(t, command)
	one.wait(t, one.err, "msg=recording")
	for _, name := range []string{"web", "api"} {
		r.kubectl(t, "create", "deployment", name, "--image=shop/"+name+":1.4", "-n", ns)
	}
	r.kubectl(t, "scale", "deployment/web", "--replicas=3", "-n", ns)
	onBus(t, nats, one, "the scale", func(e *event.Event) bool { return e.Data.Resource.Name == "web" && touches(e, "spec.replicas") })
	if err := one.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-one.done
	r.kubectl(t, "set", "image", "deployment/web", "web=shop/web:1.5", "-n", ns)

	two := r.start(t, command)
	two.wait(t, two.err, "msg=recording")
	chat.wait(t, two, "shop/web:1.5")
	r.kubectl(t, "rollout", "status", "deployment/web", "-n", ns, "--timeout=5m")
	r.kubectl(t, "delete", "deployment", "web", "api", "-n", ns)
	for _, name := range []string{"web", "api"} {
		onBus(t, nats, two, "the deletion", func(e *event.Event) bool {
			return e.Data.Resource.Name == name && e.Data.Op == event.Deleted
		})
		chat.wait(t, two, "Deployment "+ns+"/"+name+" DELETED")
	}
	r.again(t, nats, two)
	status := string(r.output(t, "tattler status")) + string(r.output(t, "tattler status -o json"))
	two.interrupt(t)

	checkBus(t, nats, r.journaled(t, ns))
	for _, said := range []string{
		"Deployment " + ns + "/web created", "Deployment " + ns + "/api created", "`spec.replicas`: `1` → `3`",
		"`spec.template.spec.containers[name=web].image`: `shop/web:1.4` → `shop/web:1.5`",
	} {
		if !strings.Contains(chat.texts(), said) {
			t.Errorf("no message says %q:\n%s", said, chat.texts())
		}
	}
	checkSecret(t, chat, status+one.read(t, one.out)+one.read(t, one.err)+two.read(t, two.out)+two.read(t, two.err))
}

func (r *reader) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := runKubectl(r.dir, cluster.Kubeconfig(), args...); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

func touches(e *event.Event, path string) bool {
	return slices.ContainsFunc(e.Data.Changes, func(c event.Change) bool { return c.Path == path })
}

func read(t *testing.T, nats *bus.Server) []event.Event {
	t.Helper()
	events, err := nats.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// onBus waits until a subscriber receives an event for which is returns true.
func onBus(t *testing.T, nats *bus.Server, p *process, what string, is func(e *event.Event) bool) {
	t.Helper()
	until(t, p, func() bool {
		return slices.ContainsFunc(read(t, nats), func(e event.Event) bool { return is(&e) })
	}, func() string { return what + " is not on the bus" })
}

// again replays everything to the bus, as a crash between delivery and acknowledgement does for some changes.
// The stream must recognize the duplicates.
func (r *reader) again(t *testing.T, nats *bus.Server, p *process) {
	t.Helper()
	var mu sync.Mutex
	sent := map[string]bool{}
	if err := nats.Subscribe("changes", func(id string) {
		mu.Lock()
		defer mu.Unlock()
		sent[id] = true
	}); err != nil {
		t.Fatal(err)
	}
	var status struct{ Sinks []struct{ Name string } }
	if out := r.output(t, "tattler status -o json"); json.Unmarshal(out, &status) != nil || len(status.Sinks) != 2 {
		t.Fatalf("two sinks are expected in %s", out)
	}
	r.output(t, "tattler sinks replay "+status.Sinks[0].Name+" --all")
	want := len(read(t, nats))
	until(t, p, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(sent) >= want
	}, func() string { return fmt.Sprintf("of %d events, only %d were sent again", want, len(sent)) })
}

// journaled returns the journal's events in order.
func (r *reader) journaled(t *testing.T, ns string) []event.Event {
	t.Helper()
	var events []event.Event
	for d := json.NewDecoder(bytes.NewReader(r.output(t, "tattler log -n "+ns+" --limit 0 -o json"))); ; {
		var e event.Event
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return events
		case err != nil:
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// checkBus checks that a subscriber receives exactly the journal's events of each object, in order.
func checkBus(t *testing.T, nats *bus.Server, journal []event.Event) {
	t.Helper()
	byObject := func(events []event.Event) map[string][]string {
		ids := map[string][]string{}
		for _, e := range events {
			key := e.Data.Resource.Name + " " + e.Data.Resource.UID
			ids[key] = append(ids[key], e.ID)
		}
		return ids
	}
	const absence = " " // an absence has no object
	want, got := byObject(journal), byObject(read(t, nats))
	if len(want) != 3 || len(want[absence]) != 1 {
		t.Errorf("want two objects and the absence, the journal has %v", want)
	}
	for object, ids := range want {
		if object != absence && len(ids) < 3 {
			t.Errorf("the journal has %d changes of %s", len(ids), object)
		}
		if !slices.Equal(got[object], ids) {
			t.Errorf("%s: on the bus are %v, in the journal %v", object, got[object], ids)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the bus has %v, the journal %v", got, want)
	}
}

// checkSecret checks that messages were posted to the URL only, and that no output contains the URL.
func checkSecret(t *testing.T, chat *slack, said string) {
	t.Helper()
	chat.mu.Lock()
	for _, path := range chat.paths {
		if path != "/services/"+webhookSecret {
			t.Errorf("a message went to %s", path)
		}
	}
	if !chat.refused || len(chat.strays) > 0 {
		t.Errorf("first message refused: %v; stray requests to the proxy: %v", chat.refused, chat.strays)
	}
	chat.mu.Unlock()
	if refusal := "503 Service Unavailable"; !strings.Contains(said, refusal) {
		t.Errorf("no log of the refusal, %s:\n%s", refusal, tail(said))
	}
	for part := range strings.SplitSeq(webhookSecret, "/") {
		if strings.Contains(said, part) {
			t.Errorf("%s of the URL is in the output:\n%s", part, tail(said))
		}
	}
}
