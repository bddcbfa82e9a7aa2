package redact

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// Pairs of fields that form a name and its value: of a variable, a parameter, a header. Pairs with operators
// and effects are label requirements and taints.
var (
	pairNames  = []string{"name", "key", "parameter", "header", "Name", "Key", "path", "type"}
	pairValues = []string{"value", "default", "values", "defaultValue", "Value", "content", "string"}
	pairSpares = []string{"operator", "effect"}
	// pairFlags mark a value as a credential, whatever its name.
	pairFlags = []string{"sensitive", "masked", "isSecret", "is_secret", "secure"}
)

// inlineValues are fields that hold the credential itself, below a field with a credential's name: {password:
// {value: x}}.
var inlineValues = []string{"value", "default", "values", "plain", "plaintext", "plainText", "literal", "inline", "content", "stringValue", "data", "text", "inline_string", "inlineString", "inline_bytes", "inlineBytes"}

// keyParts are the private members of a JSON Web Key (RFC 7518, section 6), which also has a kty.
var keyParts = []string{"k", "d", "p", "q", "dp", "dq", "qi", "oth"}

// containers are fields whose texts are all credentials, except descriptive ones.
var containers = set(`secrets passwords tokens credentials apikeys securejsondata secretdata secretvalues sensitive
	sensitivedata sensitivevalues securefields literals usercredentials basicauthusers htpasswd htpasswds`)

// object redacts a map that may be a Kubernetes object, at the root or nested.
func (a *run) object(m map[string]any, how manner) {
	kind, _ := m["kind"].(string)
	root := len(a.path.steps) == 0
	switch {
	case !root && (kind == "Secret" || kind == "ConfigMap") && holdsObject(m):
	case root && a.resource == secrets, kind == "Secret":
		a.secret(m)
	case root && a.resource == configMaps, kind == "ConfigMap":
		a.configMap(m)
	case kind == "SecretList", kind == "ConfigMapList":
		a.items(m, kind)
	}
	traits := traitsOf(m)
	if traits&(isNamed|isValued) == isNamed|isValued {
		a.pair(m)
	}
	if traits&isJWK != 0 {
		for _, part := range keyParts {
			a.set(m, part)
		}
	}
	keyed := traits&isKeySibling != 0 && refersToSecret(m)
	for key, v := range m {
		a.path.pushField(key)
		if !keyed || !isKeyName(key, v) {
			v = a.field(key, v, how)
		}
		if list, ok := v.([]any); ok && key == "args" {
			if begin, ok := m["command"].([]any); ok {
				a.arguments(list, how, begin)
			}
		}
		m[key] = v
		a.path.pop()
	}
}

// items redacts the elements of a list, which may omit their kind.
func (a *run) items(m map[string]any, kind string) {
	items, ok := m["items"].([]any)
	if !ok && kind == "SecretList" {
		a.set(m, "items")
	}
	for i, v := range items {
		a.path.pushField("items")
		item, ok := v.(map[string]any)
		if !ok {
			a.path.push(element(v, i))
			items[i] = a.hide(v)
			a.path.pop()
			a.path.pop()
			continue
		}
		a.path.push(element(v, i))
		if kind == "SecretList" {
			a.secret(item)
		} else {
			a.configMap(item)
		}
		a.path.pop()
		a.path.pop()
	}
}

// pair redacts the value of {name: PASSWORD, value: x}.
func (a *run) pair(m map[string]any) {
	kind := pairKind(m)
	if kind == plainName {
		return
	}
	for _, key := range pairSpares {
		if _, ok := m[key]; ok {
			return
		}
	}
	for _, key := range pairValues {
		s, isText := m[key].(string)
		_, isSwitch := m[key].(bool)
		if isText && !says(kind, s) || isSwitch {
			continue
		}
		a.set(m, key)
	}
}

// pairKind classifies a pair's name: one credential, several, or plainName.
func pairKind(m map[string]any) kindOfName {
	found := plainName
	for _, key := range pairNames {
		name, _ := m[key].(string)
		found = max(found, namedPair(key, name))
	}
	for _, key := range pairFlags {
		if flag, _ := m[key].(bool); flag {
			return credentialName
		}
	}
	return found
}

// namedPair classifies a value by the text of the field beside it: the path of a JSON patch, or the type of
// Keycloak's credentials.
func namedPair(field, text string) kindOfName {
	if field == "path" {
		if !strings.HasPrefix(text, "/") {
			return plainName
		}
		text = strings.TrimRight(text, "/-0123456789")
	}
	kind := nameKind(text)
	switch {
	case kind == plainName, kind == refName, field == "type" && (kind != credentialName || strings.EqualFold(text, "secret")):
		return plainName
	case kind == manyName:
		return manyName
	}
	return credentialName
}

// keySiblings are fields beside which key names occur: {secretName: x, passwordKey: password}.
var keySiblings = []string{"remoteRef", "sourceRef", "secretName", "secretRef", "existingSecret", "valueFrom", "secretNamespace"}

// trait is what a field implies about its siblings.
type trait uint8

const (
	isNamed trait = 1 << iota
	isValued
	isFlag
	isSpare
	isKeySibling
	isJWK
)

// fieldTraits maps a field's name to its traits, for a single look-up.
var fieldTraits = func() map[string]trait {
	m := map[string]trait{"kty": isJWK}
	for _, of := range []struct {
		names []string
		trait trait
	}{{pairNames, isNamed}, {pairFlags, isNamed | isFlag}, {pairValues, isValued}, {pairSpares, isSpare}, {keySiblings, isKeySibling}} {
		for _, name := range of.names {
			m[name] |= of.trait
		}
	}
	return m
}()

func traitsOf(m map[string]any) (all trait) {
	for key := range m {
		all |= fieldTraits[key]
	}
	return all
}

// refersToSecret reports whether a map has a field that refers to a Secret, and is not empty.
func refersToSecret(m map[string]any) bool {
	return slices.ContainsFunc(keySiblings, func(name string) bool { return m[name] != nil && m[name] != "" })
}

// isKeyName reports whether a field beside a reference to a Secret holds a key's name: password, DB_PASSWORD.
func isKeyName(field string, v any) bool {
	s, ok := v.(string)
	return ok && (strings.HasSuffix(field, "Key") || strings.HasSuffix(field, "_key")) && len(s) < 64 &&
		(isObjectName(strings.TrimPrefix(s, ".")) || nameKind(s) != plainName && !strings.ContainsAny(s, "0123456789") && isObjectName(strings.ToLower(s)) || strings.ToUpper(s) == s && isObjectName(strings.ToLower(s)) || !isMixed(s) && isObjectName(strings.ToLower(s)))
}

// field returns the replacement of a field's value.
func (a *run) field(key string, v any, how manner) any {
	if v == nil || a.spares(key) {
		return v
	}
	if key == "stringData" {
		if m, ok := v.(map[string]any); ok {
			a.setAll(m)
			return m
		}
		return a.hide(v)
	}
	facts := factsOf(key)
	if s, ok := v.(string); ok && (facts.copy && repeatsManifest(key, s) || a.annotates() && isManifest(s)) {
		return a.hide(v)
	}
	if list, ok := v.([]any); ok && key == "users" && isAuth(a.parent()) {
		a.each(manyName, list, func(s string) bool { return strings.Contains(s, ":") && !strings.HasPrefix(s, "system:") })
	}
	if v, ok := a.credential(key, facts, v, how); ok {
		return v
	}
	return a.value(v, manners(a.resource, key, facts, how))
}

// identifying are metadata fields that readers need unchanged; they hold no secrets.
var identifying = set(`name namespace uid resourceVersion creationTimestamp generateName managedFields ownerReferences`)

// spares reports whether a field identifies the object or lists fields and managers; see run.managedFields.
func (a *run) spares(key string) bool {
	if a.within > 0 {
		return false
	}
	switch steps := a.path.steps; len(steps) {
	case 1:
		return key == "apiVersion" || key == "kind"
	case 2:
		return identifying[key] && a.path.is("metadata", key)
	}
	return false
}

// annotates reports whether the current value is an annotation.
func (a *run) annotates() bool {
	n := len(a.path.steps)
	return n > 1 && a.path.steps[n-2].text == "annotations"
}

// parent returns the name of the parent field; empty in a list's element.
func (a *run) parent() string {
	if n := len(a.path.steps); n > 1 && a.path.steps[n-2].kind == diff.Field {
		return a.path.steps[n-2].text
	}
	return ""
}

// isAuth reports whether name is like basicAuth or digestAuth: users below it have passwords or digests.
func isAuth(name string) bool { return strings.HasSuffix(strings.ToLower(name), "auth") }

// holdsLogin reports whether s is user:password, or base64 of it, in a field that may be a credential: auth,
// cloud.auth.
func holdsLogin(key string, kind kindOfName, s string) bool {
	return (key == "auth" || key == "_auth") && isUserPassword(s) || kind == maybeName && isAccount(s)
}

// credential redacts a value whose field has a credential's name; false leaves the value to be judged by its
// form.
func (a *run) credential(key string, facts facts, v any, how manner) (any, bool) {
	kind := fieldKind(a.parent(), key, facts)
	if kind == plainName || kind == maybeName && how != asCommand {
		if s, ok := v.(string); ok && holdsLogin(key, kind, s) {
			return a.hide(v), true
		}
		if kind == plainName && !facts.container {
			return nil, false
		}
	}
	switch v := v.(type) {
	case string:
		if says(kind, v) && (kind != maybeName || how == asCommand) {
			return a.hide(v), true
		}
	default:
		if kind == credentialName && isNumber(v) {
			return a.hide(v), true
		}
	case map[string]any:
		a.below(kind, facts.container, v)
	case []any:
		for i, v := range v {
			if m, ok := v.(map[string]any); ok {
				a.path.push(element(v, i))
				a.below(kind, false, m)
				a.path.pop()
			}
		}
		switch {
		case kind == manyName && strings.HasSuffix(strings.ToLower(key), "secrets"): // or their names
			a.each(refName, v, nil)
		case kind == credentialName, kind == manyName, kind == hookName:
			a.each(kind, v, nil)
		}
	}
	return nil, false
}

// below redacts the fields that hold the credential itself, in a map below a credential's name.
func (a *run) below(kind kindOfName, container bool, m map[string]any) {
	if kind != plainName && kind != maybeName {
		for _, name := range inlineValues {
			if s, ok := m[name].(string); ok && says(credentialName, s) || kind == credentialName && isNumber(m[name]) {
				a.set(m, name)
			}
		}
	}
	if !container {
		return
	}
	for name, v := range m {
		if s, ok := v.(string); ok && says(credentialName, s) && !describing(name) {
			a.set(m, name)
		}
	}
}

func isNumber(v any) bool {
	switch v.(type) {
	case float64, int64, json.Number:
		return true
	}
	return false
}

// describing reports whether a name's last word marks it as a description.
func describing(name string) bool {
	var space [16]string
	parts := splitWords(name[max(0, len(name)-maxName):], space[:0])
	return len(parts) > 0 && (wordRoles[parts[len(parts)-1]]&isDescribing != 0 || parts[len(parts)-1] == "key")
}

// each redacts the texts of a list of credentials, and of lists in it, or only those for which is returns true.
func (a *run) each(kind kindOfName, list []any, is func(string) bool) {
	for i, v := range list {
		if inner, ok := v.([]any); ok {
			a.path.push(element(v, i))
			a.each(kind, inner, is)
			a.path.pop()
		}
		if s, ok := v.(string); ok && says(kind, s) && (is == nil || is(s)) || kind == credentialName && isNumber(v) {
			a.path.push(element(v, i))
			list[i] = a.hide(v)
			a.path.pop()
		}
	}
}

// value returns the replacement of a value that is judged by its form alone.
func (a *run) value(v any, how manner) any {
	switch v := v.(type) {
	case string:
		return a.text(v, how)
	case map[string]any:
		a.object(v, how)
	case []any:
		a.list(v, how)
	}
	return v
}

// CRDs describe the purpose of fields, and mention credentials there.
const crds = "customresourcedefinitions.apiextensions.k8s.io"

// manners returns how to read the texts of a field and of the fields below it.
func manners(resource, field string, facts facts, parent manner) manner {
	switch {
	case field == "description" && resource == crds:
		return asProse
	case facts.command:
		return asCommand
	}
	return parent
}
