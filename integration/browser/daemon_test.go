package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tattler-dev/tattler/devcluster"
)

// daemon is tattler run with a web page, and the namespace of a test.
type daemon struct {
	*program
	t       *testing.T
	ns, dir string
	address string
	args    []string
}

// namespaces counts those that startDaemon made, so that a test can run again.
var namespaces atomic.Int64

// startDaemon makes a namespace with a Deployment and a ConfigMap, and records it.
func startDaemon(t *testing.T, ns string) *daemon {
	t.Helper()
	ns = fmt.Sprint(ns, namespaces.Add(1))
	if cluster == nil {
		t.Fatal("no control plane")
	}
	ports, err := devcluster.FreePorts(1) // it stays the same when the daemon restarts
	if err != nil {
		t.Fatal(err)
	}
	port := ports[0]
	d := &daemon{t: t, ns: ns, dir: t.TempDir(), address: fmt.Sprintf("http://127.0.0.1:%d/", port)}
	config := fmt.Sprintf(`apiVersion: tattler.dev/v1alpha1
kind: Config
cluster: {name: browser}
watch:
- namespaces: {include: [%s]}
journal: {path: %s}
web: {address: "127.0.0.1:%d"}
sinks:
- name: everything
  file: {path: %s}
`, ns, filepath.Join(d.dir, "journal.db"), port, filepath.Join(d.dir, "changes.jsonl"))
	d.write("config.yaml", config)
	d.args = []string{"run", "-c", filepath.Join(d.dir, "config.yaml")}
	d.kubectl("create", "namespace", ns)
	d.settings("info")
	d.kubectl("create", "deployment", "web", "--image=shop/web:1.4", "--replicas=3")
	d.kubectl("rollout", "status", "deployment/web", "--timeout=5m")
	d.program = tattler(t, d.args...)
	d.said("msg=recording")
	return d
}

func (d *daemon) write(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d *daemon) kubectl(args ...string) {
	d.t.Helper()
	if _, err := cluster.Kubectl(d.t.Context(), append([]string{"--namespace", d.ns}, args...)...); err != nil {
		d.t.Fatal(err)
	}
}

// settings writes a ConfigMap.
func (d *daemon) settings(level string) {
	d.t.Helper()
	d.kubectl("apply", "-f", d.write("settings.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-settings}\ndata:\n  LOG_LEVEL: %s\n  app.properties: |\n    cache.size=64\n    http.retries=3\n", level)))
}

// TestLive: what changes in the cluster appears without a reload.
func TestLive(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "live")
	b := open(t, d.address, look{height: 500, width: 1300})
	b.visit("/")
	b.eval("window.before = true; 1")
	b.until(`document.querySelector(".live.on .say").textContent === "live"`)

	d.settings("debug")
	b.until(entries + `.includes("data.LOG_LEVEL: info → debug")`)
	b.is(`document.querySelector("#entries > .entry .obj").textContent.trim()`, "cm/web-settings")
	b.until(`document.querySelector("#histogram strong").textContent !== "0" && document.querySelector("#chart rect.updated")`) // it is drawn again after some seconds

	// A rollout: its changes become one entry.
	d.kubectl("set", "image", "deployment/web", "*=shop/web:1.5")
	d.kubectl("rollout", "status", "deployment/web", "--timeout=5m")
	b.until(entries + `.match(/deploy\/web .*rolled out (in|within) .*3 pods replaced/)`)
	b.click(`.entry:has(.count) a.unfold`)
	b.until(`document.querySelectorAll(".entries.inner > .entry").length > 3`)
	b.click(`.entry:has(.count) a.unfold`)

	// While the reader is further down, nothing moves.
	var many strings.Builder
	for i := range 25 {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	d.kubectl("apply", "-f", d.write("many.yaml", many.String()))
	b.until(entries + `.includes("cm/c24")`)
	b.eval(`scrollTo(0, 400)`)
	b.until(`scrollY === 400`)
	top := b.eval(`document.querySelector("#entries > .entry").id`)
	d.settings("warn")
	b.until(`document.querySelector("#fresh").checkVisibility()`)
	b.is(`document.querySelector("#fresh").textContent`, "1 new entry")
	b.is(`document.querySelector("#entries > .entry").id + " " + scrollY`, top+" 400")
	b.click("#fresh")
	b.until(`scrollY === 0 && ` + entries + `.includes("debug → warn")`)

	// Pause and resume.
	b.click("#pause")
	b.is(`document.querySelector("#pause").getAttribute("aria-pressed") + document.querySelector(".live .say").textContent`, "truepaused")
	d.settings("error")
	b.until(`document.querySelector("#fresh").checkVisibility()`)
	b.is(entries+`.includes("warn → error")`, "false")
	b.click("#pause")
	b.until(entries + `.includes("warn → error")`)

	// A filter applies to new changes, too.
	t.Run("filter", func(t *testing.T) {
		f := open(t, d.address, look{phone: true})
		f.visit("/?name=web-settings")
		f.until(`document.querySelector(".live.on")`)
		d.kubectl("create", "configmap", "other", "--from-literal=n=1")
		d.settings("info")
		f.until(entries + `.includes("error → info")`)
		f.is(entries+`.includes("other")`, "false")
	})
	b.until(entries + `.includes("cm/other")`)
	b.is("window.before", "true") // nothing loaded the page again

	d.restart(b)
}

// restart restarts the daemon. The open page connects again and shows what it missed.
func (d *daemon) restart(b *tab) {
	d.program.end()
	b.until(`document.querySelector(".live.off .say").textContent.includes("trying again")`)
	d.settings("debug")
	d.program = tattler(d.t, d.args...)
	d.said("msg=recording")
	b.until(`document.querySelector(".live.on")`)
	b.until(entries + `.includes("info → debug")`)
	b.is("window.before", "true")
	b.run(chromedp.Navigate("about:blank")) // the daemon ends before the tab
	for _, end := range []string{"REFUSED", "RESET", "CLOSED"} {
		b.drop("ERR_CONNECTION_" + end)
	}
	b.drop("ERR_INCOMPLETE_CHUNKED_ENCODING")
	b.drop("ERR_EMPTY_RESPONSE")
}

// TestDaemonPages checks the pages of a real daemon, with real objects.
func TestDaemonPages(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "pages")
	d.kubectl("set", "image", "deployment/web", "*=shop/web:1.5")
	d.kubectl("rollout", "status", "deployment/web", "--timeout=5m")
	d.settings("debug")
	b := open(t, d.address, look{})
	b.visit("/")
	b.until(entries + `.match(/rolled out (in|within) /)`)
	pages := b.pages("/object?type=configmaps&namespace=" + d.ns + "&name=web-settings")
	for _, l := range []look{{}, {phone: true, dark: true}} {
		b := open(t, d.address, l)
		for _, p := range pages {
			if strings.HasPrefix(p.name, "timeline-") || errorPages[p.name] != "" {
				continue // as with tattler ui
			}
			b.visit(p.path)
			if l.phone {
				b.narrow(p.name, phoneWidth)
				b.is(`[...document.querySelectorAll("thead th")].filter((e) => e.offsetHeight > 50).map((e) => e.innerText).join()`, "") // words are not broken
			}
			b.accessible(p.name)
			b.shoot("daemon-" + p.name + "-" + l.String())
		}
	}
	b.visit("/status")
	got := b.eval("document.body.innerText")
	for _, want := range []string{"everything", "deployments.apps", "configmaps"} {
		if !strings.Contains(got, want) {
			t.Errorf("the status has no %s:\n%s", want, got)
		}
	}
	b.visit("/object?type=deployments.apps&namespace=" + d.ns + "&name=web&view=related")
	if got := b.eval("document.body.innerText"); !strings.Contains(got, "replicasets.apps/web-") {
		t.Errorf("related:\n%s", got)
	}
	b.follow(`.related a[href*="replicasets"]`)
	b.is(`document.querySelector("h1 .kind").textContent`, "ReplicaSet")
}
