package chart

import (
	"log/slog"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

const chartDir = repository + "/charts/tattler"

func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// values reads values in YAML.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// render is helm template.
func render(t *testing.T, text string) (string, error) {
	t.Helper()
	r, err := rendered(t, text)
	if err != nil {
		return "", err
	}
	return r.Manifest, nil
}

func rendered(t *testing.T, text string) (*release.Release, error) {
	t.Helper()
	i := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	i.DryRunStrategy, i.ReleaseName, i.Namespace = action.DryRunClient, "tattler", "tattler"
	var err error
	if i.KubeVersion, err = common.ParseKubeVersion("v1.30.0"); err != nil {
		t.Fatal(err)
	}
	got, err := i.RunWithContext(t.Context(), load(t), values(t, text))
	if err != nil {
		return nil, err
	}
	return got.(*release.Release), nil
}

func TestLint(t *testing.T) {
	for _, name := range []string{"default", "full"} {
		l := action.NewLint()
		l.Strict, l.Namespace = true, "tattler"
		got := l.Run([]string{chartDir}, values(t, given(t, name)))
		for _, m := range got.Messages {
			if !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("values %s: %v", name, m)
			}
		}
	}
}

// given returns the values of testdata/NAME.values.yaml.
func given(t *testing.T, name string) string {
	t.Helper()
	return string(read(t, "testdata/"+name+".values.yaml"))
}

// TestRender compares what the chart renders. The values name the Secrets that the chart would fill at random.
func TestRender(t *testing.T) {
	for _, name := range []string{"default", "full"} {
		got, err := render(t, given(t, name))
		if err != nil {
			t.Fatalf("values %s: %v", name, err)
		}
		golden(t, name+".golden.yaml", got)
	}
}

// TestValues: values that cannot work are errors that say what to do.
func TestValues(t *testing.T) {
	for _, tc := range []struct{ why, values, want string }{
		{"a typing error", "persistences: {}", "persistences"},
		{"a typing error within", "persistence: {sise: 1Gi}", "sise"},
		{"a port as text", "service: {httpPort: '8080'}", "httpPort"},
		{"a journal outside of the volume", "config: {journal: {path: /tmp/j.db}}", "path"},
		{"probes could not reach it", "config: {listen: {address: '127.0.0.1:8080'}}", "the probes need it"},
		{"two writers", "persistence: {accessModes: [ReadWriteMany]}", "accessModes"},
		{"no page to route to", "ingress: {enabled: true}", "set web.enabled"},
		{"no page to route to", "httpRoute: {enabled: true}", "set web.enabled"},
		{"no gateway", "{web: {enabled: true}, httpRoute: {enabled: true}}", "name the gateway"},
		{"no issuer", "web: {enabled: true, tls: {certManager: {enabled: true}}}", "name the issuer"},
		{"no host", "{web: {enabled: true}, ingress: {enabled: true}}", "name a host"},
		{"no configuration", "config: null", "missing property 'config'"},
		{"sinks by name", "config: {sinks: {hook: {}}}", "/config/sinks"},
		{"a name that no Service may have", "nameOverride: Foo_Bar", "nameOverride"},
		{"a name that no Service may have", "fullnameOverride: a.b", "fullnameOverride"},
		{"a name that no Secret may have", "existingSecrets: [Hooks]", "existingSecrets"},
		{"a Secret twice", "existingSecrets: [hooks, hooks]", "existingSecrets"},
		{"a number in the environment", "env: [{name: A, value: 1}]", "/env/0/value"},
		{"labels that find the Service and Helm's objects", "commonLabels: {app.kubernetes.io/name: x}", "leave it out"},
		{"an annotation twice", "podAnnotations: {checksum/config: x}", "podAnnotations: the chart itself sets checksum/config"},
		{"an annotation twice", "commonAnnotations: {checksum/config: x}", "commonAnnotations: the chart itself sets checksum/config"},
		{"a limit without its unit", "resources: {limits: {memory: 512}}", "such as 512Mi"},
		{"a limit that the chart cannot read", "resources: {limits: {memory: 1Ei}}", "set goMemLimit"},
		{"a journal that outgrows its volume", "config: {journal: {retain: {size: 20Gi}}}", "persistence.size is 3Gi, and config.journal.retain.size is 20Gi"},
		{"the same in bytes", "config: {journal: {retain: {size: 21474836480}}}", "config.journal.retain.size is 2"},
		{"a volume without room beside the journal", "persistence: {size: 2Gi}", "persistence.size is 2Gi, and config.journal.retain.size is 1Gi"},
		{"the same without a volume", "persistence: {enabled: false, size: 2Gi}", "set persistence.size to 3072Mi or more"},
		{"the default limit of the journal", "{persistence: {size: 2Gi}, config: {journal: {retain: null}}}", "config.journal.retain.size is 1Gi"},
		{"a limit that is no size", "config: {journal: {retain: {size: much}}}", "config.journal.retain.size: much is not a size"},
		{"metrics for everyone", "service: {type: LoadBalancer}", "service.type: LoadBalancer is for the web page"},
		{"two registries", "image: {repository: registry.example/tattler}", "belongs in image.registry"},
		{"no rules", "rbac: {namespaceRules: {shop: []}}", "namespaceRules"},
		{"a typing error in a rule", "rbac: {rules: [{apiGroups: [a], resource: [b], verbs: [get]}]}", "resource"},
		{"labels that the chart sets", "commonLabels: {helm.sh/chart: x}", "leave it out"},
		{"a label that selects the pod", "podLabels: {app.kubernetes.io/instance: x}", "podLabels: the chart itself sets"},
		{"two makers of a certificate", "web: {enabled: true, tls: {existingSecret: a, certManager: {enabled: true, issuerRef: {name: a}}}}", "exclude each other"},
		{"a CA that the chart does not know", "{web: {enabled: true, tls: {existingSecret: a}}, httpRoute: {enabled: true, parentRefs: [{name: a}], backendTLSPolicy: {enabled: true}}}", "set web.tls.ca"},
		{"a typing error in a path", "ingress: {hosts: [{host: a, paths: [{pth: /}]}]}", "pth"},
	} {
		if _, err := render(t, tc.values); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: %v, want an error that says %q", tc.why, tc.values, err, tc.want)
		}
	}
}

// TestVolume: volumes that are large enough, or whose size the chart does not know.
func TestVolume(t *testing.T) {
	for _, text := range []string{
		"{persistence: {size: 60Gi}, config: {journal: {retain: {size: 20Gi}}}}",
		"{persistence: {size: 3G}, config: {journal: {retain: {size: 1000MB}}}}",
		"{persistence: {size: 3000000000}, config: {journal: {retain: {size: 1000000000}}}}",
		"{persistence: {existingClaim: a}, config: {journal: {retain: {size: 20Gi}}}}",
		"config: {journal: {retain: {size: 0}}}",
	} {
		if _, err := render(t, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestImageName: global.imageRegistry, which a parent chart sets, replaces the registry.
func TestImageName(t *testing.T) {
	for _, tc := range []struct{ values, want string }{
		{"{}", "ghcr.io/tattler-dev/tattler:v0.1.0"},
		{"global: {imageRegistry: registry.example:5000}", "registry.example:5000/tattler-dev/tattler:v0.1.0"},
		{"{global: null, image: {registry: registry.example}}", "registry.example/tattler-dev/tattler:v0.1.0"},
		{"image: {registry: '', tag: next}", "tattler-dev/tattler:next"},
	} {
		manifest, err := render(t, tc.values)
		if err != nil {
			t.Errorf("%s: %v", tc.values, err)
			continue
		}
		set := objects[appsv1.StatefulSet](t, manifest, "StatefulSet")["tattler/tattler"]
		if got := set.Spec.Template.Spec.Containers[0].Image; got != tc.want {
			t.Errorf("%s: %s, want %s", tc.values, got, tc.want)
		}
	}
}

// TestMemoryLimit: GOMEMLIMIT is below the container's limit.
func TestMemoryLimit(t *testing.T) {
	for _, tc := range []struct{ values, want string }{
		{"resources: {limits: {memory: 512Mi}}", `"460MiB"`},
		{"resources: {limits: {memory: 1.5Gi}}", `"1382MiB"`},
		{"resources: {limits: {memory: 1G}}", `"858MiB"`},
		{"resources: {limits: {memory: 536870912}}", `"460MiB"`},
		{"resources: {limits: {memory: 1Ti}}", `"943718MiB"`},
		{"{goMemLimit: 1GiB, resources: {limits: {memory: 1Ei}}}", `"1GiB"`},
		{"resources: {limits: null}", ""},
	} {
		got, err := render(t, tc.values)
		if err != nil {
			t.Errorf("%s: %v", tc.values, err)
			continue
		}
		_, after, found := strings.Cut(got, "{name: GOMEMLIMIT, value: ")
		if limit, _, _ := strings.Cut(after, "}"); found != (tc.want != "") || limit != tc.want {
			t.Errorf("%s: %q, want %q", tc.values, limit, tc.want)
		}
	}
}

// TestNotes: what Helm prints says when the rights may not fit the configuration, and when a restart loses the journal.
func TestNotes(t *testing.T) {
	const rights, volume, web = "config.watch differs from the default", "without persistence", "--in-cluster=tattler/tattler"
	for _, tc := range []struct {
		why, values string
		want, not   []string
	}{
		{"the default", "{}", nil, []string{rights, volume, web}},
		{"other kinds, with the default rights", "config: {watch: [{resources: {include: [pods]}}]}", []string{rights}, nil},
		{"other kinds, with rights", `{config: {watch: [{resources: {include: [pods]}}]}, rbac: {rules: [{apiGroups: [""], resources: [pods], verbs: [get, list, watch]}]}}`, nil, []string{rights}},
		{"no volume", "persistence: {enabled: false}", []string{volume}, nil},
		{"a page", "web: {enabled: true}", []string{web}, nil},
	} {
		r, err := rendered(t, tc.values)
		if err != nil {
			t.Fatalf("%s: %v", tc.why, err)
		}
		for _, text := range tc.want {
			if !strings.Contains(r.Info.Notes, text) {
				t.Errorf("%s: the notes lack %q:\n%s", tc.why, text, r.Info.Notes)
			}
		}
		for _, text := range tc.not {
			if strings.Contains(r.Info.Notes, text) {
				t.Errorf("%s: the notes have %q:\n%s", tc.why, text, r.Info.Notes)
			}
		}
	}
}

// TestExamples: the overlay in the documentation is the tested one, and its values are accepted.
func TestExamples(t *testing.T) {
	doc := string(read(t, repository+"/docs/helm.md"))
	overlay := strings.ReplaceAll(string(read(t, "testdata/overlay/kustomization.yaml")), "../../../../", "github.com/tattler-dev/tattler/")
	if !strings.Contains(doc, overlay) {
		t.Errorf("docs/helm.md does not have the tested overlay:\n%s", overlay)
	}
	_, after, _ := strings.Cut(doc, "```yaml\nexistingSecrets")
	example, _, _ := strings.Cut(after, "```")
	if _, err := render(t, "existingSecrets"+example); err != nil || example == "" {
		t.Errorf("the example of credentials: %v", err)
	}
}
