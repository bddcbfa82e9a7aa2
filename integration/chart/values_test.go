package chart

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// whole are keys of values.yaml that the chart passes on as they are.
var whole = []string{"config", "resources", "podSecurityContext", "securityContext"}

// Values that others need before they have an effect.
const (
	page    = "web: {enabled: true, tls: {existingSecret: page, ca: a}}\n"
	issued  = "web: {enabled: true, tls: {certManager: {enabled: true, issuerRef: {name: a}}}}\n"
	ingress = page + "ingress: {enabled: true, hosts: [{host: a.example}]}\n"
	route   = page + "httpRoute: {enabled: true, parentRefs: [{name: a}]}\n"
)

// effects has another value for each key of values.yaml, in YAML, and the values that it needs to have an effect.
var effects = map[string]struct{ needs, value string }{
	"global.imageRegistry":    {"", "registry.example"},
	"global.imagePullSecrets": {"", "[a, {name: b}]"},

	"image.registry":    {"", "registry.example"},
	"image.repository":  {"", "a/b"},
	"image.tag":         {"", "next"},
	"image.digest":      {"", "sha256:" + strings.Repeat("0", 64)},
	"image.pullPolicy":  {"", "Always"},
	"imagePullSecrets":  {"", "[{name: a}]"},
	"nameOverride":      {"", "other"},
	"fullnameOverride":  {"", "a"},
	"commonLabels":      {"", "{a: b}"},
	"commonAnnotations": {"", "{a: b}"},
	"config":            {"", "{cluster: {name: a}}"},

	"redactionKey.existingSecret": {"", "other"},
	"redactionKey.key":            {"", "other"},
	"existingSecrets":             {"", "[a]"},
	"env":                         {"", "[{name: A, value: b}]"},
	"envFrom":                     {"", "[{secretRef: {name: a}}]"},
	"extraArgs":                   {"", "[--noise]"},

	"persistence.enabled":       {"", "false"},
	"persistence.existingClaim": {"", "a"},
	"persistence.storageClass":  {"", "a"},
	"persistence.accessModes":   {"", "[ReadWriteOncePod]"},
	"persistence.size":          {"", "4Gi"},
	"persistence.annotations":   {"", "{a: b}"},
	"persistence.labels":        {"", "{a: b}"},

	"serviceAccount.create":      {"", "false"},
	"serviceAccount.name":        {"", "a"},
	"serviceAccount.annotations": {"", "{a: b}"},

	"rbac.create":         {"", "false"},
	"rbac.rules":          {"", `[{apiGroups: [""], resources: [a], verbs: [get]}]`},
	"rbac.extraRules":     {"", `[{apiGroups: [""], resources: [a], verbs: [get]}]`},
	"rbac.namespaceRules": {"", `{shop: [{apiGroups: [""], resources: [a], verbs: [get]}]}`},

	"web.enabled":                    {"web: {tls: {existingSecret: a}}", "true"},
	"web.tls.existingSecret":         {page, "other"},
	"web.tls.certManager.enabled":    {"web: {enabled: true, tls: {existingSecret: '', certManager: {issuerRef: {name: a}}}}", "true"},
	"web.tls.certManager.issuerRef":  {issued, "{name: b}"},
	"web.tls.certManager.duration":   {issued, "1h"},
	"web.tls.ca":                     {page, "b"},
	"web.clientCA.existingConfigMap": {page, "a"},
	"web.clientCA.key":               {page + "web: {enabled: true, tls: {existingSecret: page}, clientCA: {existingConfigMap: a}}", "other"},

	"service.type":        {page, "LoadBalancer"},
	"service.annotations": {"", "{a: b}"},
	"service.httpPort":    {"", "9"},
	"service.webPort":     {page, "9"},

	"ingress.enabled":     {ingress, "false"},
	"ingress.className":   {ingress, "a"},
	"ingress.annotations": {ingress, "{a: b}"},
	"ingress.hosts":       {ingress, "[{host: b.example, paths: [{pathType: Exact}]}]"},
	"ingress.tls":         {ingress, "[{secretName: a}]"},

	"httpRoute.enabled":                  {route, "false"},
	"httpRoute.annotations":              {route, "{a: b}"},
	"httpRoute.parentRefs":               {route, "[{name: b}]"},
	"httpRoute.hostnames":                {route, "[b.example]"},
	"httpRoute.backendTLSPolicy.enabled": {route, "true"},

	"serviceMonitor.enabled":           {"", "true"},
	"serviceMonitor.namespace":         {"serviceMonitor: {enabled: true}", "a"},
	"serviceMonitor.labels":            {"serviceMonitor: {enabled: true}", "{a: b}"},
	"serviceMonitor.annotations":       {"serviceMonitor: {enabled: true}", "{a: b}"},
	"serviceMonitor.interval":          {"serviceMonitor: {enabled: true}", "9s"},
	"serviceMonitor.scrapeTimeout":     {"serviceMonitor: {enabled: true}", "9s"},
	"serviceMonitor.relabelings":       {"serviceMonitor: {enabled: true}", "[{action: labeldrop, regex: a}]"},
	"serviceMonitor.metricRelabelings": {"serviceMonitor: {enabled: true}", "[{action: labeldrop, regex: a}]"},

	"prometheusRule.enabled":     {"", "true"},
	"prometheusRule.namespace":   {"prometheusRule: {enabled: true}", "a"},
	"prometheusRule.labels":      {"prometheusRule: {enabled: true}", "{a: b}"},
	"prometheusRule.annotations": {"prometheusRule: {enabled: true}", "{a: b}"},

	"dashboards.enabled":                  {"", "true"},
	"dashboards.namespace":                {"dashboards: {enabled: true}", "a"},
	"dashboards.labels.grafana_dashboard": {"dashboards: {enabled: true}", "'2'"},
	"dashboards.annotations":              {"dashboards: {enabled: true}", "{a: b}"},

	"networkPolicy.enabled":     {"", "true"},
	"networkPolicy.metricsFrom": {"networkPolicy: {enabled: true}", "[{podSelector: {}}]"},
	"networkPolicy.webFrom":     {page + "networkPolicy: {enabled: true}", "[{podSelector: {}}]"},
	"networkPolicy.egress":      {"networkPolicy: {enabled: true}", "[{ports: [{port: 443}]}]"},

	"podDisruptionBudget.enabled":        {"", "true"},
	"podDisruptionBudget.maxUnavailable": {"podDisruptionBudget: {enabled: true}", "0"},
	"podDisruptionBudget.minAvailable":   {"podDisruptionBudget: {enabled: true}", "1"},

	"resources":                      {"", "{limits: {memory: 1Gi}}"},
	"goMemLimit":                     {"", "1GiB"},
	"startupProbe.periodSeconds":     {"", "9"},
	"startupProbe.timeoutSeconds":    {"", "9"},
	"startupProbe.failureThreshold":  {"", "9"},
	"readinessProbe.periodSeconds":   {"", "9"},
	"readinessProbe.timeoutSeconds":  {"", "9"},
	"livenessProbe.periodSeconds":    {"", "9"},
	"livenessProbe.timeoutSeconds":   {"", "9"},
	"livenessProbe.failureThreshold": {"", "9"},
	"terminationGracePeriodSeconds":  {"", "99"},
	"podSecurityContext":             {"", "{runAsUser: 9}"},
	"securityContext":                {"", "{privileged: false}"},
	"podAnnotations":                 {"", "{a: b}"},
	"podLabels":                      {"", "{a: b}"},
	"priorityClassName":              {"", "a"},
	"nodeSelector":                   {"", "{a: b}"},
	"tolerations":                    {"", "[{operator: Exists}]"},
	"affinity":                       {"", "{nodeAffinity: {}}"},
	"topologySpreadConstraints":      {"", "[{maxSkew: 1}]"},
	"hostAliases":                    {"", "[{ip: 10.0.0.1}]"},
	"dnsPolicy":                      {"", "Default"},
	"dnsConfig":                      {"", "{nameservers: [10.0.0.1]}"},
	"extraVolumes":                   {"", "[{name: a, emptyDir: {}}]"},
	"extraVolumeMounts":              {"", "[{name: a, mountPath: /a}]"},
	"initContainers":                 {"", "[{name: a}]"},
	"extraContainers":                {"", "[{name: a}]"},
	"extraObjects":                   {"", "[{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]"},
}

// random are keys of what the chart makes at random: their effect cannot be seen in a comparison.
var random = []string{"web.tls.days"}

// TestEveryValue: each key of values.yaml changes what the chart renders.
func TestEveryValue(t *testing.T) {
	keys := leaves(values(t, string(read(t, chartDir+"/values.yaml"))), "")
	for _, key := range keys {
		if _, tried := effects[key]; tried == slices.Contains(random, key) {
			t.Errorf("%s: give it a row in effects, if it is not random", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(effects)) {
		e := effects[key]
		if !slices.Contains(keys, key) {
			t.Errorf("values.yaml has no %s", key)
			continue
		}
		before := merged(t, "redactionKey: {existingSecret: keys}", e.needs)
		var value any
		if err := yaml.Unmarshal([]byte(e.value), &value); err != nil {
			t.Fatal(err)
		}
		path := strings.Split(key, ".")
		for _, name := range slices.Backward(path) {
			value = map[string]any{name: value}
		}
		after := merged(t, before, asYAML(t, value))
		one, err := render(t, before)
		if err != nil {
			t.Errorf("%s: before: %v", key, err)
			continue
		}
		other, err := render(t, after)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if one == other {
			t.Errorf("%s: %s has no effect", key, e.value)
		}
		for kind := range map[string]bool{"StatefulSet": true, "ClusterRole": true} { // what is rendered is YAML
			objects[map[string]any](t, other, kind)
		}
	}
}

// leaves returns the keys of values that hold no other keys.
func leaves(of map[string]any, prefix string) (all []string) {
	for name, value := range of {
		key := prefix + name
		inner, _ := value.(map[string]any)
		if len(inner) > 0 && !slices.Contains(whole, key) {
			all = append(all, leaves(inner, key+".")...)
			continue
		}
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

// merged returns values in YAML on top of others, and in place of lists.
func merged(t *testing.T, texts ...string) string {
	t.Helper()
	out := map[string]any{}
	for _, text := range texts {
		for part := range strings.SplitSeq(text, "\n") { // a key may come twice
			overlay(out, values(t, part))
		}
	}
	return asYAML(t, out)
}

func overlay(onto, from map[string]any) {
	for key, value := range from {
		inner, isMap := value.(map[string]any)
		below, has := onto[key].(map[string]any)
		if isMap && has {
			overlay(below, inner)
		} else {
			onto[key] = value
		}
	}
}

// asYAML returns a value on one line.
func asYAML(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSchema: the schema refuses unknown keys, except those of the configuration, which the daemon checks, and of other charts.
func TestSchema(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(read(t, chartDir+"/values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	var open []string
	var walk func(key string, node any)
	walk = func(key string, node any) {
		one, _ := node.(map[string]any)
		if _, has := one["properties"]; has && one["additionalProperties"] != false {
			open = append(open, key)
		}
		for name, inner := range one {
			walk(key+"/"+name, inner)
		}
	}
	walk("", schema)
	open = slices.DeleteFunc(open, func(key string) bool {
		return key == "/properties/global" || strings.HasPrefix(key, "/properties/config")
	})
	if len(open) > 0 {
		t.Errorf("objects that accept unknown keys: %v", open)
	}
}

// TestNamespaceRules: with rights in namespaces only, there is no ClusterRole.
func TestNamespaceRules(t *testing.T) {
	manifest, err := render(t, `rbac: {namespaceRules: {shop: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(rules(t, manifest)))
	if want := []string{"Role shop/tattler.tattler"}; !slices.Equal(names, want) {
		t.Errorf("roles %q, want %q", names, want)
	}
	if strings.Contains(manifest, "ClusterRoleBinding") {
		t.Error("a binding of no role")
	}
}

// TestServices: only the cluster reaches metrics, whatever the type of the Service is.
func TestServices(t *testing.T) {
	for _, tc := range []struct {
		values string
		want   map[string]string
	}{
		{"{}", map[string]string{"tattler/tattler": "ClusterIP http"}},
		{page, map[string]string{"tattler/tattler": "ClusterIP http web"}},
		{page + "service: {type: LoadBalancer}", map[string]string{"tattler/tattler": "LoadBalancer web", "tattler/tattler-metrics": "ClusterIP http"}},
		{page + "service: {type: NodePort}", map[string]string{"tattler/tattler": "NodePort web", "tattler/tattler-metrics": "ClusterIP http"}},
	} {
		manifest, err := render(t, tc.values)
		if err != nil {
			t.Fatalf("%s: %v", tc.values, err)
		}
		got := map[string]string{}
		for name, s := range objects[corev1.Service](t, manifest, "Service") {
			got[name] = string(s.Spec.Type)
			for _, port := range s.Spec.Ports {
				got[name] += " " + port.Name
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", tc.values, diff)
		}
	}
}

// TestOffline: the configuration that the chart renders can be checked on another machine.
func TestOffline(t *testing.T) {
	for _, text := range []string{"{}", page, given(t, "full")} {
		manifest, err := render(t, text)
		if err != nil {
			t.Fatal(err)
		}
		file := write(t, t.TempDir(), "config.yaml", configIn(t, manifest))
		cmd := exec.CommandContext(t.Context(), program(t), "config", "check", "--offline", "-c", file)
		cmd.Env = []string{"HOME=" + t.TempDir()}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
