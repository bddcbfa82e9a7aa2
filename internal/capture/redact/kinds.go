package redact

import (
	"encoding/base64"
	"path"
	"strings"
)

// openFields are the fields of a Secret that reveal nothing of its data.
var openFields = set(`apiVersion kind metadata type immutable data stringData`)

// openAnnotations are annotations that hold no part of a Secret. An entry that ends with / covers everything
// below.
var openAnnotations = []string{
	"kubernetes.io/service-account.name",
	"kubernetes.io/service-account.uid",
	"meta.helm.sh/release-name",
	"meta.helm.sh/release-namespace",
	"helm.sh/",
	"cert-manager.io/",
	"argocd.argoproj.io/sync-wave",
	"reloader.stakater.com/",
	"replicator.v1.mittwald.de/replicated-at",
}

// secret redacts the data of a Secret, its annotations and, at the root, any unexpected field.
func (a *run) secret(m map[string]any) {
	for key := range m {
		switch {
		case key == "data": // stringData is redacted everywhere; see field
			if values, ok := m[key].(map[string]any); ok {
				a.under(key, func() { a.setAll(values) })
			} else {
				a.set(m, key)
			}
		case len(a.path.steps) == 0 && (!openFields[key] || (key == "type" || key == "immutable") && isNested(m[key])):
			a.set(m, key)
		}
	}
	meta, ok := m["metadata"].(map[string]any)
	if !ok {
		a.set(m, "metadata")
		return
	}
	a.under("metadata", func() {
		annotations, ok := meta["annotations"].(map[string]any)
		if !ok {
			a.set(meta, "annotations")
			return
		}
		a.under("annotations", func() {
			for key := range annotations {
				if !isOpen(key) || isNested(annotations[key]) {
					a.set(annotations, key)
				}
			}
		})
	})
}

func isNested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func isOpen(annotation string) bool {
	for _, open := range openAnnotations {
		if annotation == open || strings.HasSuffix(open, "/") && strings.HasPrefix(annotation, open) {
			return true
		}
	}
	return false
}

// holdsObject reports whether the data of a nested object is an object of its own, as in Kyverno's policies: {kind:
// ConfigMap, data: {kind: ConfigMap, data: {a: b}}}. The walk judges that one.
func holdsObject(m map[string]any) bool {
	data, _ := m["data"].(map[string]any)
	_, hasData := data["data"].(map[string]any)
	_, hasMeta := data["metadata"].(map[string]any)
	if m["kind"] == "Secret" {
		return data["kind"] == "Secret" && (hasData || hasMeta)
	}
	return hasData || hasMeta
}

// configMap redacts values that look like credentials by key or form, and all of a Helm release.
func (a *run) configMap(m map[string]any) {
	helm := isHelmRelease(m)
	for _, field := range []string{"data", "binaryData"} {
		v, found := m[field]
		values, ok := v.(map[string]any)
		if !ok {
			if found {
				a.set(m, field)
			}
			continue
		}
		a.under(field, func() {
			for key, v := range values {
				s, ok := v.(string)
				if helm || !ok || isKeyStore(key) || says(nameKind(key), s) || field == "binaryData" && credentialBinary(s) {
					a.set(values, key)
				}
			}
		})
	}
}

// isHelmRelease reports whether a ConfigMap holds a release of Helm 3 or Helm 2, with every value and manifest
// of the chart.
func isHelmRelease(m map[string]any) bool {
	meta, _ := m["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	name, _ := meta["name"].(string)
	return labels["owner"] == "helm" || labels["OWNER"] == "TILLER" || strings.HasPrefix(name, "sh.helm.release.v1.")
}

// credentialBinary checks the decoded base64; text that is not base64 does not belong there.
func credentialBinary(s string) bool {
	b, err := base64.StdEncoding.DecodeString(s)
	return err != nil || isZipped(s) || holdsCredential(string(b), asText)
}

// isKeyStore reports whether a file name is typical of binary key stores.
func isKeyStore(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jks", ".p12", ".pfx", ".keystore", ".kdbx", ".ppk", ".keytab", ".jceks":
		return true
	}
	return false
}
