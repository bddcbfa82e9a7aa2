package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// helmRelease is a revision of a Helm 3 release, from the labels of its Secret or ConfigMap. The chart is only in the data,
// which is hidden.
//
// Source: newSecretsObject and newConfigMapsObject in pkg/storage/driver of helm.sh/helm/v3 v3.19.0.
type helmRelease struct{ name, revision, status string }

// helmPrefix is the prefix of these objects' names.
const helmPrefix = "sh.helm.release.v1."

func helmReleaseOf(r change.Kind, name string, obj map[string]any) (h helmRelease, ok bool) {
	switch kind := r.GroupKind(); {
	case kind == "Secret" && jsonmap.Text(obj, "type") == "helm.sh/release.v1":
	case kind == "ConfigMap" && strings.HasPrefix(name, helmPrefix):
	default:
		return h, false
	}
	labels := jsonmap.Object(obj, "metadata", "labels")
	h = helmRelease{jsonmap.Text(labels, "name"), jsonmap.Text(labels, "version"), jsonmap.Text(labels, "status")}
	return h, jsonmap.Text(labels, "owner") == "helm" && h.name != "" && h.revision != ""
}

// helm describes a change of a release; ok is false for any other object.
func helm(c change.Change) (words string, ok bool) {
	obj := c.After
	if c.Gone() {
		obj = c.Before
	}
	h, ok := helmReleaseOf(c.Kind, c.Name, obj)
	if !ok {
		return "", false
	}
	was, _ := helmReleaseOf(c.Kind, c.Name, c.Before)
	status, steps := h.status, h.status != "superseded"
	switch {
	case c.Gone():
		steps = false
		if status == "uninstalling" {
			status = "uninstalled"
		}
	case c.Op != event.Created && c.Op != event.Updated:
		steps = false
	case c.Op == event.Updated && was == h: // for example between the hooks of an upgrade
		status = "still " + status
	}
	revision := "v" + h.revision
	// Revisions increase by one: see (*Upgrade).prepareUpgrade and
	// (*Rollback).prepareRollback in helm.sh/helm/v3/pkg/action.
	if n, err := strconv.Atoi(h.revision); err == nil && n > 1 && steps && !strings.HasPrefix(h.status, "uninstall") {
		revision = fmt.Sprintf("v%d → %s", n-1, revision)
	}
	words = "helm release " + h.name + ": " + revision
	if status != "" {
		words += " (" + status + ")"
	}
	return words, true
}

// helm prints a change of a release, if it is one.
func (t *Text) helm(c change.Change) bool {
	words, ok := helm(c)
	if !ok || c.Op == event.Converted || t.o.Whole {
		return false
	}
	if shown, _ := t.visible(c); c.Op == event.Updated && len(shown) == 0 && !c.Blind {
		return false
	}
	t.counts.Shown++
	r := t.row(c, signUpdated)
	r.name, r.manager = words, unknown
	switch c.Op {
	case event.Created:
		r.sign, r.manager = signCreated, c.Manager
	case event.Updated:
		shown, _ := t.visible(c)
		r.manager = managersOf(c, shown)
	case event.Deleted:
		r.sign, r.info = signDeleted, existedFor(c)
	case event.Left:
		r.sign, r.info, r.manager = signLeft, "left the selection", crossedBy(c)
	case event.Entered:
		r.sign, r.info, r.manager = signEntered, "entered the selection", crossedBy(c)
	default:
		r.sign, r.manager = signSnapshot, ""
	}
	t.begin(r)
	return true
}
