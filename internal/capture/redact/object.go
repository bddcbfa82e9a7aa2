package redact

import (
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// Pairs of fields that form a name and its value: of a variable, a parameter, a header. Pairs with operators
// and effects are label requirements and taints.
var (
	pairNames  = []string{"name", "key", "parameter", "header", "variable", "var", "env", "setting", "property", "option", "field"}
	pairValues = []string{"value", "default", "values", "defaultvalue", "content", "string", "val", "literal", "array", "map"}
	pairSpares = []string{"operator", "effect"}
	// pairFlags mark a value as a credential, whatever its name.
	pairFlags = []string{"sensitive", "masked", "isSecret", "is_secret", "secure"}
	// pairSources hold where the value is from, and perhaps its default.
	pairSources = []string{"valueFrom", "valueSource", "from"}
)

// pairPrefixes may be before them: ParameterKey, env-entry-value.
var pairPrefixes = []string{"", "parameter", "param", "header", "variable", "enventry", "env", "setting", "property", "prop", "option", "attribute", "attr"}

// inlineValues are fields that hold the credential itself, below a field with a credential's name: {password:
// {value: x}}.
var inlineValues = []string{"value", "default", "values", "plain", "plaintext", "plainText", "literal", "inline", "content", "stringValue", "data", "text", "inline_string", "inlineString", "inline_bytes", "inlineBytes", "raw", "val", "string"}

// keyParts are the private members of a JSON Web Key (RFC 7518, section 6), which also has a kty.
var keyParts = []string{"k", "d", "p", "q", "dp", "dq", "qi", "oth"}

// containers are fields whose texts are all credentials, except descriptive ones.
var containers = set(`secrets passwords tokens credentials apikeys securejsondata secretdata secretvalues sensitive
	sensitivedata sensitivevalues securefields literals usercredentials basicauthusers htpasswd htpasswds extrasecrets secretenv secretenvs secretvars`)

// keySiblings are fields beside which key names occur: {secretName: x, passwordKey: password}.
var keySiblings = []string{"remoteRef", "sourceRef", "secretName", "secretRef", "existingSecret", "valueFrom", "secretNamespace", "objectName"}

// trait is what a field implies about its siblings, or its parent about it.
type trait uint16

const (
	isNamed trait = 1 << iota
	isValued
	isFlag
	isSpare
	isSource
	isKeySibling
	isInline
	isKeyPart
	isJWK
	isKind
)

const ofPairs = isNamed | isValued

// traitOf returns the traits of a field's name. Those of pairs do not depend on capitals and dashes.
func traitOf(name string) trait {
	found := fieldTraits[name]
	if len(name) < 24 && name != "Path" && name != "Type" {
		lower := strings.ToLower(withoutDashes.Replace(name))
		for _, prefix := range pairPrefixes {
			if rest, ok := strings.CutPrefix(lower, prefix); ok && (rest == "name" || rest == "key" || rest == "value" || prefix == "") {
				found |= fieldTraits[rest] & ofPairs
			}
		}
	}
	return found
}

// fieldTraits maps a field's name to its traits, for a single look-up.
var fieldTraits = func() map[string]trait {
	m := map[string]trait{"kty": isJWK, "kind": isKind, "path": isNamed, "type": isNamed}
	for _, of := range []struct {
		names []string
		trait trait
	}{{pairNames, isNamed}, {pairFlags, isFlag}, {pairValues, isValued}, {pairSpares, isSpare}, {pairSources, isSource}, {keySiblings, isKeySibling},
		{inlineValues, isInline}, {keyParts, isKeyPart}} {
		for _, name := range of.names {
			m[name] |= of.trait
		}
	}
	return m
}()

// context is what the fields around a value imply about it.
type context struct {
	key  string // of the field; empty in a list
	list string // the field of the list
	how  manner
	implied
}

// implied is what they imply about a field whose own name implies nothing.
type implied struct {
	kind      kindOfName
	container kindOfName // of the texts below, in a container
	store     bool       // a map in a container
	pair      kindOfName
	keyed     bool // beside a reference to a Secret; see isKeyName
	jwk       bool
}

// value redacts a value.
func (a *run) value(t *tree, n *node, c context) {
	switch n.kind {
	case '"':
		if says(c.kind, n.text) && !(c.how == asFile && isPhrase(c.key, n.text)) {
			a.hide(t, n)
		} else if made, ok := a.text(n.text, c.how); ok {
			t.replace(n, made)
		}
	case '0':
		if c.kind == credentialName {
			a.hide(t, n)
		}
	case '{':
		a.object(t, n, c)
	case '[':
		a.list(t, n, c, nil)
	}
}

// object redacts a map that may be a Kubernetes object, at the root or nested.
func (a *run) object(t *tree, n *node, c context) {
	traits := trait(0)
	label, looked := "", false // what stands beside a key that is about keys
	for i := n.child; i != 0; i = t.at(i).next {
		f := t.at(i)
		f.facts = factsOf(f.key)
		trait := f.facts.trait
		switch traits |= trait; {
		case trait&isNamed != 0 && f.kind == '"':
			if f.key == "key" && !looked && isAboutKeys(f.text) {
				label, looked = t.textOf(n, "value"), true
			}
			c.pair = max(c.pair, namedPair(f, label))
		case trait&isFlag != 0 && f.kind == 't' && t.source[f.from] == 't':
			c.pair = credentialName
		case trait&isKeySibling != 0 && f.kind != 'n' && !(f.kind == '"' && f.text == ""):
			c.keyed = true
		}
	}
	if traits&isKind != 0 || len(a.path.steps) == 0 {
		a.objectOfKind(t, n)
	}
	if traits&isSpare != 0 {
		c.pair = plainName
	}
	c.keyed = c.keyed || traits&isNamed != 0 && t.textOf(n, "secret") != "" && t.textOf(n, "key") != ""
	c.jwk = traits&isJWK != 0
	for i, before, nth := n.child, "", 0; i != 0; i = t.at(i).next {
		f := t.at(i)
		if nth++; f.key != before {
			before, nth = f.key, 0
		}
		if f.made != "" || f.kind == 'n' {
			continue
		}
		a.path.pushField(f.key)
		if f.style == rawStyle { // an element, of which there may be several
			a.path.push(sibling(t, f, nth))
		}
		a.field(t, n, f, c)
		if f.style == rawStyle {
			a.path.pop()
		}
		a.path.pop()
	}
}

// field redacts the value of a field of the object n, whose context is c.
func (a *run) field(t *tree, n, f *node, c context) {
	if f.kind == 'n' || a.spares(f.key) {
		return
	}
	facts := f.facts
	if facts.plain && c.implied == (implied{}) && c.key != "annotations" {
		a.below(t, n, f, context{key: f.key, how: c.how})
		return
	}
	if a.hidesField(f, c, facts) {
		a.hide(t, f)
		return
	}
	if f.key == "stringData" {
		a.hideEach(t, f, '{', nil)
		return
	}
	in := context{key: f.key, how: manners(a.resource, f.key, facts, c.how)}
	in.kind = fieldKind(c.key, f.key, facts)
	switch f.kind {
	case '[':
		in.store = facts.container == credentialName
	case '{':
		in.container = facts.container
		in.store = c.container == credentialName
		if (c.store || c.key == "secret") && facts.trait&isInline != 0 { // {secrets: {a: {data: {b: x}}}}
			in.container = credentialName
		}
	}
	if f.kind == '"' && holdsLogin(f.key, in.kind, f.text) {
		a.hide(t, f)
		return
	}
	in.kind = in.kind.in(in.how)
	isText := f.kind == '"' || f.kind == '0'
	switch {
	case c.keyed && isKeyName(f):
		in.kind = plainName
	case (c.kind >= refName || c.store) && facts.trait&isInline != 0 && isText && (f.kind == '"' || c.kind == credentialName),
		c.container == credentialName && isText && (!describing(f.key) || c.holdsVariables(f.key)),
		len(f.key) == 3 && isText && strings.EqualFold(f.key, "key") && !c.keyed && c.holdsKeys() && t.field(n, "name") == nil,
		f.key == "literals" && c.list == "secretGenerator", // of kustomize
		c.pair != plainName && facts.trait&isSource != 0 && f.kind == '{':
		in.kind = credentialName
	case f.key == "key" && strings.HasPrefix(strings.ToLower(withoutDashes.Replace(c.list)), "keyauth"): // of Kong
		in.kind = credentialName
	case (c.kind >= manyName || c.kind == wordName) && f.key == "key" && in.kind != credentialName, c.container != plainName && f.kind == '"' && in.kind == plainName:
		in.kind = wordName
	case c.keyed && f.key == "secret":
		in.kind = refName
	case c.kind == manyName && f.key == "keys": // {api-keys: {keys: [x]}}
		in.kind = manyName
	case f.key == "users" && isAuth(c.key), f.key == "list" && c.key == "chpasswd": // of cloud-init
		in.kind = loginName
	}
	a.below(t, n, f, in)
}

// holdsVariables reports whether the fields of a container are variables, of any name: secretEnv, or in capitals.
func (c *context) holdsVariables(field string) bool {
	return strings.ToUpper(field) == field || endsWithAny(strings.ToLower(c.key), "env", "envs", "vars")
}

// holdsKeys reports whether a field named key is a key here, unless it is beside the name of a Secret: below credentials,
// apiKey, and in a list of apiKeys.
func (c *context) holdsKeys() bool {
	return c.container == credentialName || c.kind >= manyName && endsWithAny(strings.ToLower(c.key+c.list), "key", "keys")
}

// below redacts the value of the field f of the object n.
func (a *run) below(t *tree, n, f *node, in context) {
	switch f.kind {
	case '[':
		var begin *node
		if f.key == "args" {
			begin = t.field(n, "command")
		}
		a.list(t, f, in, begin)
	default:
		a.value(t, f, in)
	}
}

// hidesField reports whether a field is hidden as a whole, whatever its value says.
func (a *run) hidesField(f *node, c context, facts facts) bool {
	isText := f.kind == '"'
	switch {
	case c.jwk && facts.trait&isKeyPart != 0:
		return true
	case isText && (facts.copy && repeatsManifest(f.key, f.text) || c.key == "annotations" && isManifest(f.text)):
		return true
	}
	return c.pair != plainName && facts.trait&isValued != 0 && f.kind != 't' && f.kind != 'f' && (!isText || says(c.pair, f.text))
}

// namedPair classifies a value by the text of the field f beside it: a name, the path of a JSON patch, or the type of
// Keycloak's credentials. label is the value if isAboutKeys.
func namedPair(f *node, label string) kindOfName {
	field, text := f.key, f.text
	if field == "path" {
		if !strings.HasPrefix(text, "/") {
			return plainName
		}
		text = strings.TrimRight(text, "/-0123456789")
	}
	kind := nameKind(strings.TrimSpace(text))
	switch {
	case kind == plainName, kind == refName, field == "type" && (kind != credentialName || strings.EqualFold(text, "secret")):
		return plainName
	case kind == maybeName:
		return credentialName
	case field == "key" && isAboutKeys(text) && label != "" && areWords(label):
		return plainName
	}
	return kind.in(asCommand)
}

// isAboutKeys reports whether the key of a label may say something about keys.
func isAboutKeys(s string) bool { return len(s) >= 3 && strings.EqualFold(s[len(s)-3:], "key") }

// areWords reports whether s is a word, or two; more may be a passphrase.
func areWords(s string) bool {
	return isObjectName(s) && !strings.ContainsAny(s, "0123456789") && strings.Count(s, "-") < 2
}

// isKeyName reports whether a field beside a reference to a Secret holds a key's name: password, DB_PASSWORD.
func isKeyName(f *node) bool {
	s := f.text
	if f.kind != '"' || !endsWithAny(f.key, "Key", "_key") || len(s) >= 64 {
		return false
	}
	lower := strings.ToLower(s)
	return isObjectName(strings.TrimPrefix(s, ".")) || isObjectName(lower) && (strings.ToUpper(s) == s || !isMixed(s) || nameKind(s) != plainName && !strings.ContainsAny(s, "0123456789"))
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

// isAuth reports whether name is like basicAuth or digestAuth: users below it have passwords or digests.
func isAuth(name string) bool { return strings.HasSuffix(strings.ToLower(name), "auth") }

// holdsLogin reports whether s is user:password, or base64 of it, in a field that may be a credential: auth,
// cloud.auth.
func holdsLogin(key string, kind kindOfName, s string) bool {
	return (key == "auth" || key == "_auth") && isUserPassword(s) || kind == maybeName && isAccount(s)
}

// describing reports whether a name's last word marks it as a description.
func describing(name string) bool {
	var space [16]string
	parts := splitWords(name[max(0, len(name)-maxName):], space[:0])
	return len(parts) > 0 && (wordRoles[parts[len(parts)-1]]&isDescribing != 0 || parts[len(parts)-1] == "key")
}

// list redacts a list. Its texts may form a command line, which may begin in another list, {command: [mysql], args:
// [-px]}, or be NAME=value.
func (a *run) list(t *tree, n *node, c context, begin *node) {
	texts := c
	switch {
	case c.kind == manyName && strings.HasSuffix(strings.ToLower(c.key), "secrets"), c.key == "secret" && t.at(n.child).next != 0: // or names
		texts.kind = refName
	case c.kind < manyName && c.kind != wordName:
		texts.kind = plainName
	case c.kind == manyName: // each is one, also a number
		texts.kind = credentialName
	}
	c.list, c.key, c.container, texts.key = c.key, "", plainName, ""
	var line command
	line.begin(t, begin, n)
	index := 0
	for i := n.child; i != 0; i, index = t.at(i).next, index+1 {
		v := t.at(i)
		if v.kind != '"' {
			in := c
			if v.kind != '{' {
				in = texts
			}
			line.before = ""
			a.path.push(element(t, v, index))
			a.value(t, v, in)
			a.path.pop()
			continue
		}
		a.argument(t, v, &line, texts.kind, index)
	}
}

// argument redacts a text in a list.
func (a *run) argument(t *tree, v *node, line *command, kind kindOfName, index int) {
	before := line.before
	hides := line.flagged(v.text) || announcedBy(before, v.text)
	at := step{kind: diff.Index, index: index}
	if hides {
		at = byFlag(before)
	} else if flag, _, found := strings.Cut(v.text, "="); found && len(flag) < maxName && len(strings.Fields(flag)) == 1 {
		at = byFlag(flag)
	}
	a.path.push(at)
	if hides {
		a.hide(t, v)
	} else {
		a.value(t, v, context{how: asCommand, implied: implied{kind: kind}})
	}
	a.path.pop()
}

// byFlag identifies an argument by its flag, so that an inserted argument does not change its marker.
func byFlag(flag string) step { return step{kind: diff.Value, text: flag} }

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

// commandFields hold command lines or variables: a credential's name may occur anywhere below them.
var commandFields = set(`env envs environment environments envvars extraenv extraenvs extraenvvars variables vars
	args arguments extraargs additionalargs command commands cmd cmds entrypoint script scripts run exec flags
	options opts javaopts javaoptions jvmoptions parameters params properties value default`)

// isCommandField reports whether name is one of these, ignoring case, _ and -, or is a script file.
func isCommandField(name string) bool {
	return strings.HasSuffix(name, ".sh") || len(name) < 24 && commandFields[strings.ToLower(withoutDashes.Replace(name))]
}

var withoutDashes = strings.NewReplacer("_", "", "-", "")

func endsWithAny(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(s, w) })
}
