package redact

import (
	"encoding/base64"
	"path"
	"strings"
)

// openFields of a Secret say nothing of its data.
var openFields = set(`apiVersion kind metadata type immutable data stringData`)

// openAnnotations of a Secret hold no part of it. Those that end with / stand for all below.
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

// secret hides the data of a Secret, its annotations, and at the root whatever else a Secret should
// not have.
func (a *run) secret(m map[string]any) {
	for key := range m {
		switch {
		case key == "data": // stringData is hidden wherever it stands; see field
			if values, ok := m[key].(map[string]any); ok {
				a.under(key, func() { a.setAll(values) })
			} else {
				a.set(m, key)
			}
		case len(a.path.steps) == 0 && !openFields[key]:
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
				if !isOpen(key) {
					a.set(annotations, key)
				}
			}
		})
	})
}

func isOpen(annotation string) bool {
	for _, open := range openAnnotations {
		if annotation == open || strings.HasSuffix(open, "/") && strings.HasPrefix(annotation, open) {
			return true
		}
	}
	return false
}

// configMap hides what looks like a credential by its key or form, and all of a Helm release.
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

// isHelmRelease tells the ConfigMaps in which Helm 3 and Helm 2 can keep releases: with every value
// and manifest of the chart.
func isHelmRelease(m map[string]any) bool {
	meta, _ := m["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	name, _ := meta["name"].(string)
	return labels["owner"] == "helm" || labels["OWNER"] == "TILLER" || strings.HasPrefix(name, "sh.helm.release.v1.")
}

// credentialBinary looks at what base64 stands for; what is no base64 has no business there.
func credentialBinary(s string) bool {
	b, err := base64.StdEncoding.DecodeString(s)
	return err != nil || isZipped(s) || holdsCredential(string(b), asText)
}

// isKeyStore tells the names of files in which keys are kept in a binary form.
func isKeyStore(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jks", ".p12", ".pfx", ".keystore", ".kdbx", ".ppk", ".keytab", ".jceks":
		return true
	}
	return false
}
