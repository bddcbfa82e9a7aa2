package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// bodyLines is the maximum number of lines for a created object.
const bodyLines = 15

// body prints a created object without its identity and status. A long object loses the server's defaults, and its most
// important fields come first, so that the few lines show what its author wrote.
func (t *Text) body(r change.Kind, obj map[string]any) {
	if t.o.Each != nil {
		return
	}
	if t.o.Whole {
		t.whole(obj)
		return
	}
	wants := map[string]any{}
	for key, v := range obj {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			if v != nil {
				wants[key] = v
			}
		}
	}
	var labels []string
	if m := bodyMetadata(obj); len(m) > 0 {
		labels = diff.YAML(map[string]any{"metadata": m})
	}
	lines := append(bodyYAML(wants), labels...)
	total := len(lines)
	if !t.o.Full && total > bodyLines {
		if builtIn(r.Group) {
			lines = append(bodyYAML(withoutDefaults(wants).(map[string]any)), labels...)
		}
		first := highlights(obj)
		for _, l := range first {
			t.line(t.detail(plain, l))
		}
		lines = excerptOf(lines, bodyLines-len(first))
	}
	for _, l := range lines {
		t.line(t.detail(plain, l))
	}
	if left := total - len(lines); left > 0 {
		t.line(t.detail(dim, fmt.Sprintf("… %d more (--full)", left)))
	}
}

// maxHighlights is the maximum number of highlights of a long body.
const maxHighlights = 6

// highlights returns lines for the most important fields of a long object: how many pods it runs and when, their images,
// and the keys of its data.
func highlights(obj map[string]any) []string {
	var out []string
	for _, path := range []string{"replicas", "schedule", "parallelism"} {
		if v := jsonmap.Get(obj, "spec", path); v != nil {
			out = append(out, "spec."+path+": "+diff.Scalar(v))
		}
	}
	for _, spec := range []string{"spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec"} {
		for _, containers := range []string{"initContainers", "containers"} {
			for _, c := range jsonmap.List(obj, append(strings.Split(spec, "."), containers)...) {
				if m, _ := c.(map[string]any); jsonmap.Text(m, "image") != "" {
					out = append(out, fmt.Sprintf("%s.%s[name=%s].image: %s", spec, containers, jsonmap.Text(m, "name"), jsonmap.Text(m, "image")))
				}
			}
		}
	}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		if keys := slices.Sorted(maps.Keys(jsonmap.Object(obj, field))); len(keys) > 1 {
			out = append(out, field+": "+plural(len(keys), "key")+": "+strings.Join(keys, ", "))
		}
	}
	if len(out) > maxHighlights {
		out = append(out[:maxHighlights-1], fmt.Sprintf("… %d more like these", len(out)-maxHighlights+1))
	}
	return out
}

// whole prints all of an object, as kubectl get -o yaml would.
func (t *Text) whole(obj map[string]any) {
	if !t.o.Whole || len(obj) == 0 || t.o.Each != nil {
		return
	}
	for _, l := range diff.YAML(obj) {
		t.line(t.detail(plain, l))
	}
}

// textLines is the maximum number of lines of a text within a long body, such as a certificate.
const textLines = 4

// excerptOf returns the beginning of a long body. It shortens each text, and does not end with a name without its value.
func excerptOf(lines []string, most int) []string {
	var out []string
	block, shown := -1, 0 // the indentation of the text's name, and its lines so far
	for _, l := range lines {
		indent := len(l) - len(strings.TrimLeft(l, " "))
		if block >= 0 && (indent > block || l == "") {
			if shown++; shown > textLines {
				continue
			}
		} else {
			block, shown = -1, 0
			if strings.HasSuffix(l, ": |") || strings.HasSuffix(l, ": |-") || strings.HasSuffix(l, ": |+") {
				block = indent
			}
		}
		if len(out) == most {
			break
		}
		out = append(out, l)
	}
	for len(out) > 0 && strings.HasSuffix(out[len(out)-1], ":") {
		out = out[:len(out)-1]
	}
	return out
}

func bodyYAML(wants map[string]any) []string {
	if len(wants) == 0 {
		return nil
	}
	return diff.YAML(wants)
}

// bodyMetadata returns the metadata that an author chose: labels, annotations, finalizers.
func bodyMetadata(obj map[string]any) map[string]any {
	m := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		chosen := map[string]any{}
		for k, v := range jsonmap.Object(obj, "metadata", key) {
			if !redundant(k) {
				chosen[k] = v
			}
		}
		if len(chosen) > 0 {
			m[key] = chosen
		}
	}
	var finalizers []any
	for _, f := range jsonmap.List(obj, "metadata", "finalizers") {
		if s, _ := f.(string); !strings.HasPrefix(s, "kubernetes.io/") { // set by the server
			finalizers = append(finalizers, f)
		}
	}
	if len(finalizers) > 0 {
		m["finalizers"] = finalizers
	}
	return m
}

// redundant reports whether a label or annotation repeats another field.
func redundant(key string) bool {
	switch key {
	case "kubectl.kubernetes.io/last-applied-configuration", "kubernetes.io/metadata.name",
		"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name":
		return true
	}
	return strings.HasPrefix(key, "deployment.kubernetes.io/")
}

// defaults are fields that the server sets by default (k8s.io/kubernetes: pkg/apis/{core,apps,batch}/v1/defaults.go and
// others), and that say little about an object.
var defaults = map[string][]any{
	"backoffLimit":                         {int64(6)},
	"completionMode":                       {"NonIndexed"},
	"concurrencyPolicy":                    {"Allow"},
	"conversion":                           {map[string]any{"strategy": "None"}},
	"dnsPolicy":                            {"ClusterFirst"},
	"enableServiceLinks":                   {true},
	"failedJobsHistoryLimit":               {int64(1)},
	"imagePullPolicy":                      {"IfNotPresent"},
	"internalTrafficPolicy":                {"Cluster"},
	"ipFamilyPolicy":                       {"SingleStack"},
	"manualSelector":                       {false},
	"metadata":                             {map[string]any{}},
	"persistentVolumeClaimRetentionPolicy": {map[string]any{"whenDeleted": "Retain", "whenScaled": "Retain"}},
	"podManagementPolicy":                  {"OrderedReady"},
	"podReplacementPolicy":                 {"TerminatingOrFailed"},
	"preemptionPolicy":                     {"PreemptLowerPriority"},
	"priority":                             {int64(0)},
	"progressDeadlineSeconds":              {int64(600)},
	"resources":                            {map[string]any{}},
	"restartPolicy":                        {"Always"},
	"revisionHistoryLimit":                 {int64(10)},
	"schedulerName":                        {"default-scheduler"},
	"securityContext":                      {map[string]any{}},
	"sessionAffinity":                      {"None"},
	"strategy":                             {rolling("maxSurge", "25%", "maxUnavailable", "25%")},
	"successfulJobsHistoryLimit":           {int64(3)},
	"suspend":                              {false},
	"terminationGracePeriodSeconds":        {int64(30)},
	"terminationMessagePath":               {"/dev/termination-log"},
	"terminationMessagePolicy":             {"File"},
	"updateStrategy":                       {rolling("partition", int64(0)), rolling("maxSurge", int64(0), "maxUnavailable", int64(1))},
}

// rolling returns a workload's default update strategy, with pairs of names and values.
func rolling(pairs ...any) map[string]any {
	update := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		update[pairs[i].(string)] = pairs[i+1]
	}
	return map[string]any{"type": "RollingUpdate", "rollingUpdate": update}
}

// withoutDefaults returns a copy of a value without defaults.
func withoutDefaults(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			if redundant(key) {
				continue
			}
			if !slices.ContainsFunc(defaults[key], func(d any) bool { return diff.Equal(d, e) }) {
				out[key] = withoutDefaults(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = withoutDefaults(e)
		}
		return out
	}
	return v
}
