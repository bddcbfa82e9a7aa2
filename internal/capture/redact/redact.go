// Package redact replaces what must not be seen, before anything compares, compresses, stores or
// shows an object.
//
// Hidden are, in any object and at any depth:
//
//   - the data of Secrets and all their annotations but harmless ones, also in lists and within other objects,
//     Helm releases, and texts that are manifests of Secrets;
//   - fields, variables, parameters, headers, arguments and keys of ConfigMaps whose names look like a credential's
//     (names.go), unless the value only says where the credential is (values.go);
//   - what is assigned to such a name in a text: in a file, a command line, JSON or YAML (text.go, assign.go), or
//     stands where a known program takes a password (forms.go, arguments.go);
//   - tokens of well-known forms, private keys, JSON web tokens, hashes of passwords, URLs with a password and
//     the URLs of chat webhooks, wherever they stand (tokens.go, urls.go);
//   - annotations that repeat an object's manifest (copies.go);
//   - what the user's rules name.
//
// A text of one line is hidden whole; of more lines, and of JSON, only what is found. Managed fields that repeat a
// hidden value, as the name of a list's element, are left out.
//
// Not found is what neither its place nor its form gives away: a password under an innocent name, in a sentence, in
// an encoding other than base64 and percent-encoding. Rules are for these. Names stay visible: of fields, of the keys of a Secret, and
// of objects. docs/security.md says this for users.
//
// A hidden value becomes "hidden #" and 16 hexadecimal digits: the start of HMAC-SHA256 over the object's UID, the
// path and the value. So the same and a changed value can be distinguished within one field, and nothing links two
// objects or fields. A value that reads like a marker is hidden like any other; hiding an object twice therefore
// hashes its markers again. A path of more than 64 steps or 1 KiB is represented by a digest (place.identity).
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
	"github.com/tattler-dev/tattler/internal/capture/rules"
)

// version counts the built-in rules' revisions: raise it whenever they hide more, less or otherwise,
// so that nothing hidden by others is compared with what these hide.
const version = 4

// minKey is the least length of a key in bytes: a shorter one can be found by trying.
const minKey = 16

// Redactor hides values. It is safe for concurrent use.
type Redactor struct {
	key         []byte
	user        *rules.Set
	fingerprint string
}

// New makes a Redactor with the built-in rules and the user's. The key has at least 16 bytes; it is
// copied. A rule that would hide what identifies an object (its kind, name, UID, …) is an error.
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

// NewRandomKey returns a key that nobody else has: markers made with it mean nothing after the process.
func NewRandomKey() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails (crypto/rand)
	return key
}

// identity is what the engine and every reader need of an object.
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

// Fingerprint identifies the rules and the key without revealing the key. Markers compare only under
// equal fingerprints.
func (r *Redactor) Fingerprint() string { return r.fingerprint }

// SumKey returns the key of sums of objects' contents before redaction (feed.Options.SumKey): it
// follows from the redaction key, so that nobody without that can try values against a sum.
func (r *Redactor) SumKey() []byte { return r.derive("sums") }

// SumKeyID identifies SumKey without showing it: sums compare only under equal ones.
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

// Ruled reports whether a user's rule names the resource: without one, nobody looks at managed fields.
func (r *Redactor) Ruled(resource string) bool {
	return len(r.user.For(split(resource))) > 0
}

// Learn notes the names by which rules may call a resource: see rules.Set.Learn.
func (r *Redactor) Learn(group, resource string, names ...string) {
	r.user.Learn(group, resource, names...)
}

// Resources are what the user's rules name.
func (r *Redactor) Resources() []string { return r.user.Resources() }

// Apply hides values in place, and reports whether there were any. Its time and memory are bounded by a multiple of
// the object's size. The resource is its plural and group:
// secrets, deployments.apps. What has another shape than its kind should have is hidden whole. Apply
// fails only where there is no object.
func (r *Redactor) Apply(resource string, obj map[string]any) (hid bool, err error) {
	return r.apply(resource, obj, false)
}

// Again is Apply for an object in which another Redactor, with other rules or another key, has hidden
// values: those stay as they are, for nobody knows what they stand for.
func (r *Redactor) Again(resource string, obj map[string]any) error {
	_, err := r.apply(resource, obj, true)
	return err
}

// Reveal puts into an object what it hides and a later version of it shows, as under rules that hide less,
// where the marker tells that the value is the same: it did not change. It looks into no lists.
func (r *Redactor) Reveal(resource string, obj, later map[string]any) {
	newRun(r.key, resource, obj).reveal(obj, later)
}

func (r *Redactor) apply(resource string, obj map[string]any, again bool) (hid bool, err error) {
	if obj == nil {
		return false, errors.New("redact: no object")
	}
	a := newRun(r.key, resource, obj)
	a.again = again
	a.object(obj, asText)
	for _, p := range r.user.For(split(resource)) {
		p.Visit(obj, a)
	}
	a.managedFields(obj)
	return a.hidden > 0, nil
}

// split returns the group and plural of deployments.apps.
func split(resource string) (group, plural string) {
	plural, group, _ = strings.Cut(resource, ".")
	return group, plural
}
