// Package redact replaces secret values, before an object is compared, compressed, stored or shown.
//
// It redacts, in any object and at any depth:
//
//   - the data of Secrets and all their annotations but harmless ones, also in lists and within other objects,
//     Helm releases, and texts that are manifests of Secrets;
//   - fields, variables, parameters, headers, arguments and keys of ConfigMaps whose names look like a credential's
//     (names.go), unless the value only says where the credential is (values.go);
//   - values assigned to such a name in a text, such as a file or a command line (text.go, assign.go, arrange.go), or placed
//     where a known program takes a password (forms.go, arguments.go);
//   - tokens of well-known forms, private keys, JSON web tokens, password hashes, URLs with a password and
//     the URLs of chat webhooks, anywhere (tokens.go, urls.go);
//   - annotations that repeat an object's manifest (copies.go);
//   - the values that the user's rules select.
//
// An object, and a text that is JSON, YAML or XML, is read into a tree (tree.go, yaml.go, xml.go), which one walk
// redacts (object.go); a text that is neither is searched by one rule for names and their values. A one-line text is
// redacted whole; in others, only the values found. Managed fields that repeat a redacted value, as the name of a
// list's element, are removed.
//
// It does not find values that neither place nor form gives away: a password under an innocent name, in a
// sentence, or in an encoding other than base64 and percent-encoding. User rules cover these. Names stay
// visible: of fields, of the keys of a Secret, and of objects. docs/security.md describes this for users.
//
// A redacted value becomes "hidden #" and 16 hexadecimal digits: the start of HMAC-SHA256 over the object's
// UID, the path and the value. So a changed value can be distinguished within one field, but values of
// different objects or fields cannot be linked. A value that looks like a marker is redacted like any other;
// redacting an object twice therefore hashes its markers again. A path of more than 64 steps or 1 KiB is
// represented by a digest (place.identity).
package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/rules"
)

// version is the revision of the built-in rules. Raise it with every change of their results, so that values
// redacted by different revisions are not compared.
const version = 10

// minKey is the minimum length of a key in bytes; a shorter one could be found by trial.
const minKey = 16

// Redactor redacts values. It is safe for concurrent use.
type Redactor struct {
	key         []byte
	user        *rules.Set
	fingerprint string
}

// New returns a Redactor with the built-in rules and the user's. The key has at least 16 bytes; it is copied. A
// rule that would redact an object's identity (its kind, name, UID, …) is an error.
func New(key []byte, user []rules.Rule) (*Redactor, error) {
	if len(key) < minKey {
		return nil, fmt.Errorf("use redaction key: %d bytes, want at least %d", len(key), minKey)
	}
	set, err := rules.Compile(user)
	if err != nil {
		return nil, fmt.Errorf("read redact rules: %w", err)
	}
	for _, rule := range user {
		for _, text := range rule.Paths {
			if err := sparesIdentity(text); err != nil {
				return nil, fmt.Errorf("read redact rules: %w", err)
			}
		}
	}
	r := &Redactor{key: append([]byte(nil), key...), user: set}
	r.fingerprint = r.identify(user)
	return r, nil
}

// NewRandomKey returns a new random key: markers made with it are meaningless outside this process.
func NewRandomKey() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails (crypto/rand)
	return key
}

// identity lists the fields that the engine and every reader need.
var identity = []string{
	"apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace", "metadata.uid",
	"metadata.resourceVersion", "metadata.creationTimestamp",
}

func sparesIdentity(pattern string) error {
	p, err := diff.ParsePattern(pattern)
	if err != nil {
		return err
	}
	for _, text := range identity {
		place, err := diff.ParsePath(text)
		if err != nil {
			return err
		}
		if p.Covers(place) {
			return fmt.Errorf("path %q would hide %s, which identifies the object", pattern, text)
		}
	}
	return nil
}

// Fingerprint identifies the rules and the key without revealing the key. Markers are comparable only under
// equal fingerprints.
func (r *Redactor) Fingerprint() string { return r.fingerprint }

// SumKey returns the key for checksums of objects' contents before redaction (feed.Options.SumKey). It is
// derived from the redaction key, so that values cannot be tried against a sum without that key.
func (r *Redactor) SumKey() []byte { return r.derive("sums") }

// SumKeyID identifies SumKey without revealing it: sums are comparable only under equal IDs.
func (r *Redactor) SumKeyID() string { return hex.EncodeToString(r.derive("id of sums")[:8]) }

func (r *Redactor) derive(purpose string) []byte {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

func (r *Redactor) identify(user []rules.Rule) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte("fingerprint"))
	for _, rule := range user {
		fmt.Fprintf(mac, "%q %q\n", rule.Resources, rule.Paths)
	}
	return fmt.Sprintf("redact-%d-%s", version, hex.EncodeToString(mac.Sum(nil)[:8]))
}

// Ruled reports whether a user's rule names the resource. Without one, managed fields are not checked.
func (r *Redactor) Ruled(resource string) bool {
	return len(r.user.For(split(resource))) > 0
}

// Learn registers the names by which rules may call a resource; see rules.Set.Learn.
func (r *Redactor) Learn(group, resource string, names ...string) {
	r.user.Learn(group, resource, names...)
}

// Resources returns the resources that the user's rules name.
func (r *Redactor) Resources() []string { return r.user.Resources() }

// Redact returns an object's JSON without secret values, or raw itself if there are none. Its time and memory are
// bounded by a multiple of the object's size. resource is plural and group: secrets, deployments.apps. Values of
// unexpected shape are redacted whole. It fails if raw is not a JSON object.
func (r *Redactor) Redact(resource string, raw []byte) ([]byte, error) {
	if r.Ruled(resource) { // a rule's fields may be anywhere
		obj, err := jsonmap.Decode(raw)
		if err != nil {
			return nil, err
		}
		if _, err := r.Apply(resource, obj); err != nil {
			return nil, err
		}
		return jsonmap.Encode(obj)
	}
	t := newTree(string(raw), raw)
	defer t.free()
	a, err := r.read(resource, t, false)
	if err != nil || a.hidden == 0 {
		return raw, err
	}
	return []byte(t.write()), nil
}

// Apply is Redact for a decoded object, in place. It reports whether anything was redacted.
func (r *Redactor) Apply(resource string, obj map[string]any) (hid bool, err error) {
	return r.apply(resource, obj, false)
}

// Again is Apply for an object that another Redactor, with other rules or another key, has redacted: the
// existing markers stay, because their values are unknown.
func (r *Redactor) Again(resource string, obj map[string]any) error {
	_, err := r.apply(resource, obj, true)
	return err
}

// Reveal restores values in an object that a later version shows, as under rules that redact less, if the
// marker proves that the value is the same: it did not change. It does not descend into lists.
func (r *Redactor) Reveal(resource string, obj, later map[string]any) {
	newRun(r.key, resource, jsonmap.Text(obj, "metadata", "uid"), jsonmap.Text(obj, "metadata", "namespace"), jsonmap.Text(obj, "metadata", "name")).reveal(obj, later)
}

func (r *Redactor) apply(resource string, obj map[string]any, again bool) (hid bool, err error) {
	if obj == nil {
		return false, errors.New("redact: no object")
	}
	source := canonical(obj)
	t := newTree(string(source), source)
	defer t.free()
	a, err := r.read(resource, t, again)
	if err != nil {
		return false, err
	}
	t.apply(t.at(1), obj)
	before := a.hidden
	for _, p := range r.user.For(split(resource)) {
		p.Visit(obj, a)
	}
	if a.hidden > before {
		a.managedFields(t, t.at(1))
		t.apply(t.at(1), obj)
	}
	return a.hidden > 0, nil
}

// read reads and redacts an object.
func (r *Redactor) read(resource string, t *tree, again bool) (*run, error) {
	if !t.readJSON() || t.at(1).kind != '{' || t.at(1).next != 0 {
		return nil, errors.New("redact: not a JSON object")
	}
	root := t.at(1)
	meta := t.field(root, "metadata")
	a := newRun(r.key, resource, t.textOf(meta, "uid"), t.textOf(meta, "namespace"), t.textOf(meta, "name"))
	a.again = again
	a.object(t, root, context{how: asText})
	a.managedFields(t, root)
	return a, nil
}

// split returns the group and plural of deployments.apps.
func split(resource string) (group, plural string) {
	plural, group, _ = strings.Cut(resource, ".")
	return group, plural
}
