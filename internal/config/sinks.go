package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options are the options of a type of sinks: a pointer to a struct with yaml tags, of texts, numbers,
// truths, durations, encoding.TextUnmarshalers, and structs, lists and maps of these.
type Options interface {
	// Validate says what is wrong. It talks to nobody. Options that also have ClearText(reference, value string)
	// error are asked about each credential that the file names by a reference, such as ${env:TOKEN}.
	Validate() error
}

// SinkType is a type of sinks that a program has.
type SinkType struct {
	// Name is the type's key in a sink: file, webhook, log.
	Name string
	// New returns the options' defaults; each call another pointer.
	New func() Options
	// Schemes are the forms of an address for --to: what stands before the colon, and the options for an
	// address, which comes whole. Its error names no credential.
	Schemes map[string]func(address string) (Options, error)
	// Takes claims addresses of a scheme that several types have, such as the URLs that a chat service
	// hands out; nil takes what no other claims.
	Takes func(address *url.URL) bool
	// Place are the keys in an address's query that say where it goes, such as an exchange: they count for
	// the sink's name. They hold no credential. A sink of --to begins anew where one is added.
	Place []string
	// Identity, if set, is what of an address the sink's name is made of, instead of the address without user and
	// query: what says where it goes, and nothing that may be renewed. Only a hash of it is kept.
	Identity func(address string) string
	// Secret says that the path of an address is a credential, and with the type's own schemes all of it.
	Secret bool
}

func (d *decoder) isType(name string) bool { return slices.Contains(d.typeNames(), name) }

func (d *decoder) typeNames() []string {
	names := make([]string, len(d.types))
	for i, t := range d.types {
		names[i] = t.Name
	}
	return names
}

// sink decodes the options of a sink, in which credentials may stand.
func (d *decoder) sink(name, value *yaml.Node, s *Sink, key string) {
	if s.Type != "" {
		d.fail(name, key, "this sink has the type %s already: write two sinks", s.Type)
		return
	}
	s.Type = name.Value
	i := slices.IndexFunc(d.types, func(t SinkType) bool { return t.Name == s.Type })
	s.Options = d.types[i].New()
	d.places[key] = value
	inner := decoder{input: d.input, secrets: &secrets{lookupEnv: d.lookupEnv, readFile: d.readFile}}
	before := len(d.errs)
	inner.value(value, reflect.ValueOf(s.Options).Elem(), key, nil)
	s.secrets = inner.secrets.found
	if len(d.errs) == before { // else Validate would complain of what could not be read
		if err := s.validate(); err != nil {
			inner.invalid(key, s.Hide(err.Error()))
		}
	}
}

// validate is that of the options, and of where their credentials go.
func (s *Sink) validate() error {
	if err := s.Options.Validate(); err != nil {
		return err
	}
	to, ok := s.Options.(interface {
		ClearText(reference, value string) error
	})
	if !ok {
		return nil
	}
	for _, c := range s.secrets {
		if err := to.ClearText(c.source, c.value); err != nil {
			return err
		}
	}
	return nil
}

// invalid notes what Validate says; where that begins with a key and a colon, at the key.
func (d *decoder) invalid(key, reason string) {
	if name, rest, found := strings.Cut(reason, ": "); found && !strings.ContainsAny(name, " \"") {
		key, reason = key+"."+name, rest
	}
	d.failAt(key, "%s", reason)
}

// SinkFromURL makes a sink of an address as --to takes it: file:changes.jsonl, https://example.com/x,
// log: or - for stdout. Which there are, the types say. It is named after its type and address, so that
// the same address goes on where it was; user, password and query of a URL do not count, but for the keys
// that are the type's Place, or what is its Identity.
func (l *Loader) SinkFromURL(address string) (Sink, error) {
	scheme, rest, found := strings.Cut(address, ":")
	if address == "-" {
		scheme, rest, found = "log", "", true
	}
	scheme = strings.ToLower(scheme)
	t := l.typeFor(address, scheme)
	if !found || t == nil {
		return Sink{}, fmt.Errorf("read --to %s: %s", shorten(address, nil), l.wanted(address, found))
	}
	options, err := t.Schemes[scheme](address)
	if err != nil {
		return Sink{}, fmt.Errorf("read --to %s: %w", shorten(address, t), err)
	}
	sink := Sink{Type: t.Name, Options: options}
	setDefaults(&sink)
	sink.Name = sinkName(t, scheme, rest, address)
	if err := sink.Options.Validate(); err != nil {
		hidden := strings.ReplaceAll(err.Error(), address, shorten(address, t))
		return Sink{}, fmt.Errorf("read --to %s: %s", shorten(address, t), hidden)
	}
	return sink, nil
}

// typeFor is the type that has an address's scheme; of several the one that claims it, else the one that
// claims nothing.
func (l *Loader) typeFor(address, scheme string) *SinkType {
	var having []*SinkType
	for i := range l.Sinks {
		if l.Sinks[i].Schemes[scheme] != nil {
			having = append(having, &l.Sinks[i])
		}
	}
	if len(having) == 1 {
		return having[0]
	}
	u, err := url.Parse(address)
	var first *SinkType
	for _, t := range having {
		switch {
		case t.Takes == nil && first == nil:
			first = t
		case t.Takes != nil && err == nil && t.Takes(u):
			return t
		}
	}
	return first
}

// inCloud says where a sink is that the reference has and the program lacks.
const inCloud = "this program has no such sink; tattler-cloud has: see docs/sinks"

// elsewhere are the schemes that tattler-cloud has besides; its tests see to that.
var elsewhere = []string{"azureservicebus", "gcppubsub", "sns", "sqs"}

// wanted says which addresses there are.
func (l *Loader) wanted(address string, hasScheme bool) string {
	scheme, _, _ := strings.Cut(address, ":")
	if hasScheme && slices.Contains(elsewhere, strings.ToLower(scheme)) {
		return inCloud
	}
	var schemes []string
	for _, t := range l.Sinks {
		for s := range t.Schemes {
			schemes = append(schemes, s+":")
		}
	}
	slices.Sort(schemes)
	reason := fmt.Sprintf("want an address that begins with one of %s", strings.Join(slices.Compact(schemes), ", "))
	if !hasScheme {
		reason += fmt.Sprintf("; for a file, file:%s", shorten(address, nil))
	}
	return reason
}

// Add adds a sink that SinkFromURL made to those of a file. A name that is taken is an error.
func (c *Config) Add(s Sink) error {
	if slices.ContainsFunc(c.Sinks, func(other Sink) bool { return other.Name == s.Name }) {
		return fmt.Errorf("add sink: there is one with the name %s already, perhaps to the same address", s.Name)
	}
	c.Sinks = append(c.Sinks, s)
	return nil
}

// sinkName is the type, and a hash of the address where there is one.
func sinkName(t *SinkType, scheme, rest, address string) string {
	if rest == "" {
		return t.Name
	}
	if t.Identity != nil {
		return t.Name + "-" + hash(t.Identity(address))
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		rest = u.String()
	} else if authority, ok := strings.CutPrefix(rest, "//"); ok && scheme != "file" { // several hosts, which url does not read
		authority, _, _ = strings.Cut(authority, "?")
		rest = scheme + "://" + authority[strings.LastIndexByte(authority, '@')+1:]
	} else if scheme != "file" { // a name, such as an ARN: the same in every directory
		rest, _, _ = strings.Cut(scheme+":"+rest, "?")
	} else if abs, err := filepath.Abs(rest); err == nil {
		rest = scheme + ":" + abs
	}
	return t.Name + "-" + hash(rest+t.place(address))
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// place is what a query says of where an address goes; empty where it says nothing.
func (t *SinkType) place(address string) string {
	_, query, _ := strings.Cut(address, "?")
	values, _ := url.ParseQuery(query) // the type has read it
	for key := range values {
		if !slices.Contains(t.Place, key) {
			values.Del(key)
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// shorten leaves out of an address what may be a credential. Of one that no type takes, or whose type says
// that it is one, only the scheme is left, or the host where that is a web server's. What looks like a host
// may be a user and a password that is not escaped, where an @ comes later.
func shorten(address string, t *SinkType) string {
	u, err := url.Parse(address)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https")
	switch {
	case err == nil && u.Host == "" && (t == nil || !t.Secret) && u.User == nil && u.RawQuery == "":
		return address
	case err == nil && u.Host != "" && (web || t != nil && !t.Secret) && (u.User != nil || !strings.Contains(address, "@")):
		return u.Scheme + "://" + u.Host + "/…"
	}
	scheme, _, _ := strings.Cut(address, ":")
	return scheme + ":…"
}
