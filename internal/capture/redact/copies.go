package redact

import (
	"regexp"
	"strings"
)

// copies matches the ends of annotations in which tools keep an earlier form of the object: kubectl and its imitators,
// kapp, Rancher, operators. Such values are redacted whole, because they repeat the values that the rules redact
// elsewhere in the object.
var copies = regexp.MustCompile(`(?:last-?applied(?:-?(?:config|configuration|spec|state|manifest))?|(?:applied|previous|original)-(?:config|configuration|spec|manifest)|` +
	`last-(?:known-|modified-)?(?:config|configuration|spec)|last-known-good|(?:rendered|source)-manifest)$`)

// exactCopies are more such annotations, by full name.
var exactCopies = map[string]bool{
	"objectset.rio.cattle.io/applied": true,
	"kapp.k14s.io/original":           true,
	"kapp.k14s.io/original-diff":      true,
}

// minCopy is the length from which a value may be a copy, and not a time, a hash or a switch.
const minCopy = 20

// repeatsManifest reports whether an annotation holds an earlier form of the whole object.
func repeatsManifest(key, value string) bool {
	if exactCopies[key] {
		return true
	}
	if len(value) == 0 || len(value) < minCopy && !strings.Contains(key, "/") {
		return false
	}
	c := copyEnding(key)
	return c != "" && (strings.Contains(c, "last-applied") || strings.ContainsAny(value, "{[:=") || isZipped(value) || len(value) > 128)
}

// copyEnding returns what copies matches in a name, or empty.
func copyEnding(key string) string {
	if len(key) > 512 {
		return ""
	}
	return copies.FindString(strings.ToLower(strings.ReplaceAll(key[strings.LastIndexByte(key, '/')+1:], "_", "-")))
}

// isManifest reports whether a text is a Kubernetes object in JSON or YAML, whatever the annotation's name.
func isManifest(s string) bool {
	if len(s) < minCopy {
		return false
	}
	if mayBeJSON(s) {
		return strings.Contains(s, `"apiVersion"`) && strings.Contains(s, `"kind"`) &&
			(strings.Contains(s, `"metadata"`) || strings.Contains(s, `"spec"`) || strings.Contains(s, `"data"`))
	}
	return strings.Contains(s, "\n") && strings.Contains(s, "apiVersion:") && strings.Contains(s, "kind:") &&
		(strings.Contains(s, "metadata:") || strings.Contains(s, "spec:") || strings.Contains(s, "data:"))
}
