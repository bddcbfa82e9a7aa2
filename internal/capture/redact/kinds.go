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

// objectOfKind redacts what an object of a kind keeps: a Secret, a ConfigMap, or a list of them, whose elements may
// omit their kind.
func (a *run) objectOfKind(t *tree, n *node) {
	root := len(a.path.steps) == 0
	switch kind := t.textOf(n, "kind"); {
	case !root && (kind == "Secret" || kind == "ConfigMap") && t.holdsObject(n, kind):
	case root && a.resource == secrets, kind == "Secret":
		a.secret(t, n)
	case root && a.resource == configMaps, kind == "ConfigMap":
		a.configMap(t, n)
	case kind == "SecretList", kind == "ConfigMapList":
		a.each(t, n, func(f *node) {
			if f.key != "items" {
				return
			}
			a.hideEach(t, f, '[', func(item *node) bool {
				switch {
				case item.kind != '{':
					return true
				case kind == "SecretList":
					a.secret(t, item)
				default:
					a.configMap(t, item)
				}
				return false
			})
		})
	}
}

// secret redacts the data of a Secret, its annotations and, at the root, any unexpected field.
func (a *run) secret(t *tree, n *node) {
	a.each(t, n, func(f *node) {
		switch {
		case f.key == "data": // stringData is redacted everywhere; see field
			a.hideEach(t, f, '{', nil)
		case f.key == "metadata" && f.kind == '{':
			a.each(t, f, func(f *node) {
				if f.key == "annotations" {
					a.hideEach(t, f, '{', func(f *node) bool { return !isOpen(f.key) || f.child != 0 })
				}
			})
		case f.key == "metadata", len(a.path.steps) == 1 && (!openFields[f.key] || (f.key == "type" || f.key == "immutable") && f.child != 0):
			a.hide(t, f)
		}
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

// holdsObject reports whether the data of a nested object is an object of its own, as in Kyverno's policies: {kind:
// ConfigMap, data: {kind: ConfigMap, data: {a: b}}}. The walk judges that one.
func (t *tree) holdsObject(n *node, kind string) bool {
	data := t.field(n, "data")
	holds := func(key string) bool { f := t.field(data, key); return f != nil && f.kind == '{' }
	return (kind != "Secret" || t.textOf(data, "kind") == "Secret") && (holds("data") || holds("metadata"))
}

// configMap redacts values that look like credentials by key or form, and all of a Helm release.
func (a *run) configMap(t *tree, n *node) {
	helm := t.isHelmRelease(n)
	a.each(t, n, func(values *node) {
		if values.key == "data" || values.key == "binaryData" {
			a.hideEach(t, values, '{', func(f *node) bool {
				return helm || f.kind != '"' || isKeyStore(f.key) || says(nameKind(f.key).in(asCommand), f.text) || values.key == "binaryData" && credentialBinary(f.text)
			})
		}
	})
}

// isHelmRelease reports whether a ConfigMap holds a release of Helm 3 or Helm 2, with every value and manifest
// of the chart.
func (t *tree) isHelmRelease(n *node) bool {
	meta := t.field(n, "metadata")
	labels := t.field(meta, "labels")
	return t.textOf(labels, "owner") == "helm" || t.textOf(labels, "OWNER") == "TILLER" || strings.HasPrefix(t.textOf(meta, "name"), "sh.helm.release.v1.")
}

// credentialBinary checks the decoded base64; text that is not base64 does not belong there.
func credentialBinary(s string) bool {
	b, err := base64.StdEncoding.DecodeString(s)
	return err != nil || isZipped(s) || holdsCredential(string(b), 0)
}

// isKeyStore reports whether a file name is typical of binary key stores.
func isKeyStore(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jks", ".p12", ".pfx", ".keystore", ".kdbx", ".ppk", ".keytab", ".jceks":
		return true
	}
	return false
}
