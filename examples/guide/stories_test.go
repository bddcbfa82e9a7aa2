package guide

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// sections are those of the page, but for the one about tests.
var sections = []section{
	{
		name: "watch", clientGo: watchClientGo, tattler: watchTattler,
		before: func(w *world) { w.create("web", nil) },
		story: []step{
			{"ADDED web|added web", func(w *world) { w.scale("web", 2) }},
			{"MODIFIED web|updated web", func(w *world) {
				w.lines.cut()
				w.scale("web", 3)
			}},
			{"has ended|updated web", nil},
		},
	},
	{
		name: "factory", clientGo: factoryClientGo, tattler: factoryTattler, before: tiers,
		story: []step{{"watches", nil}},
	},
	{
		name: "dynamic", clientGo: dynamicClientGo, tattler: dynamicTattler, before: tiers,
		story: []step{{"Deployment web", nil}},
	},
	{
		name: "handlers", clientGo: handlersClientGo, tattler: handlersTattler,
		story: []step{
			{"", func(w *world) { w.create("web", nil) }},
			{"add web", func(w *world) { w.scale("web", 2) }},
			{"update web", func(w *world) { w.delete("web") }},
			{"delete web", nil},
		},
	},
	{
		name: "listers", clientGo: listersClientGo, tattler: listersTattler, before: tiers,
		story: []step{{"the next reader", nil}},
	},
	{
		name: "indexers", clientGo: indexersClientGo, tattler: indexersTattler,
		before: func(w *world) {
			w.createPod("web-0", "node-0", "web", "tls")
			w.createPod("web-1", "node-1", "web", "site", "tls")
			w.createPod("db-0", "node-1", "db")
		},
		story: []step{{"configMap", nil}},
	},
	{
		name: "mirror", clientGo: mirrorClientGo, tattler: mirrorTattler,
		before: func(w *world) { w.create("web", nil) },
		story: []step{
			{"put web 1", func(w *world) { w.scale("web", 2) }},
			{"put web 2", func(w *world) { w.delete("web") }},
			{"delete web", nil},
		},
	},
	{
		name: "sync", clientGo: syncClientGo, tattler: syncTattler,
		before: func(w *world) { w.create("web", nil) },
		story: []step{
			{"all were handled", func(w *world) { w.create("late", nil) }},
			{"late was there", nil},
		},
	},
	{
		name: "resync", clientGo: resyncClientGo, tattler: resyncTattler, endless: true,
		before: func(w *world) { w.create("web", nil) },
		story:  []step{{"check web", nil}, {"check web", nil}},
	},
	{
		name: "queue", clientGo: queueClientGo, tattler: queueTattler,
		before: func(w *world) { w.create("web", nil) },
		story: []step{
			{"has 1", func(w *world) { w.scale("web", 2) }},
			{"has 2", func(w *world) { w.delete("web") }},
			{"is gone", nil},
		},
	},
	{
		name: "lead", clientGo: leadClientGo, tattler: leadTattler,
		before: func(w *world) { w.create("web", nil) },
		story:  []step{{"b leads no longer|b reconciles", nil}},
	},
	{
		name: "trim", clientGo: trimClientGo, tattler: trimTattler,
		before: func(w *world) { w.create("web", nil) },
		story:  []step{{"containers", nil}},
	},
	{
		name: "restart", clientGo: restartClientGo, tattler: restartTattler,
		before: func(w *world) { directory = w.t.TempDir() },
		story: []step{
			{"", func(w *world) { w.create("web", nil) }},
			{"added web", func(w *world) { w.scale("web", 2) }},
			{"updated web", func(w *world) {
				w.again(func() {
					w.delete("web")
					w.create("db", nil)
				})
			}},
			{"added db", nil},
		},
	},
	{
		name: "forbidden", clientGo: forbiddenClientGo, tattler: forbiddenTattler, user: "nobody",
		story: []step{{"wait:", nil}},
	},
	{
		name: "crd", clientGo: crdClientGo, tattler: crdTattler,
		story: []step{
			{"synced:|wait:", installWidgets},
			{"added left", nil},
		},
	},
}

// tiers makes a Deployment of the front and one of the back.
func tiers(w *world) {
	w.create("web", map[string]string{"tier": "front"})
	w.create("db", map[string]string{"tier": "back"})
}

const widgetKind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

const widget = `apiVersion: example.com/v1
kind: Widget
metadata: {name: left, namespace: shop}
`

// installWidgets makes a kind, and an object of it, until the end of the test.
func installWidgets(w *world) {
	w.t.Helper()
	w.t.Cleanup(func() { kubectl(w.t, "delete", "customresourcedefinition", "widgets.example.com") })
	apply(w.t, widgetKind)
	kubectl(w.t, "wait", "--timeout=2m", "--for=condition=Established", "customresourcedefinition/widgets.example.com")
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := clustertest.Poll(ctx, 50*time.Millisecond, func() error { // it is established before kubectl finds it
		_, err := cluster.Kubectl(ctx, "get", "widgets", "-n", "shop")
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	apply(w.t, widget)
}

func apply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "-f", file)
}

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	if _, err := cluster.Kubectl(context.WithoutCancel(t.Context()), args...); err != nil {
		t.Error(err)
	}
}
