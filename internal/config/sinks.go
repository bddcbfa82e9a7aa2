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

// Options are the options of a type of sinks: a pointer to a struct with yaml tags, of strings, numbers,
// booleans, durations, encoding.TextUnmarshalers, and structs, lists and maps of these.
type Options interface {
	// Validate checks the options without any request. If the options also have ClearText(reference, value
	// string) error, it is called for each credential that the file names by a reference, such as ${env:TOKEN}.
	Validate() error
}

// SinkType is a type of sinks of a program.
type SinkType struct {
	// Name is the type's key in a sink: file, webhook, log.
	Name string
	// New returns the default options, a new pointer in each call.
	New func() Options
	// Schemes map the schemes of addresses for --to, the text before the colon, to a function that returns the
	// options for a complete address. Its error names no credential.
	Schemes map[string]func(address string) (Options, error)
	// Takes claims addresses of a scheme that several types have, such as the URLs of chat services; nil takes
	// the addresses that no other type claims.
	Takes func(address *url.URL) bool
	// Place lists the keys in an address's query that are part of its destination, such as an exchange: they
	// are included in the sink's name. They hold no credential. A sink of --to starts over if one is added.
	Place []string
	// Identity, if set, returns the part of an address from which the sink's name is made, in place of the
	// address without user and query: its destination, without parts that may be renewed. Only a hash of it is
	// kept.
	Identity func(address string) string
	// Secret means that the path of an address is a credential; with the type's own schemes, the whole address
	// is.
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

// sink decodes the options of a sink, which may contain credentials.
func (d *decoder) sink(name, value *yaml.Node, s *Sink, key string) {
	if s.Type != "" {
		d.fail(name, key, "this sink already has the type %s: write two sinks", s.Type)
		return
	}
	s.Type = name.Value
	i := slices.IndexFunc(d.types, func(t SinkType) bool { return t.Name == s.Type })
	s.Options = d.types[i].New()
	s.secrets = d.options(value, s.Options, key)
}

// tracesKey is the key of Config.Traces.
const tracesKey = "traces"

// readTraces decodes the options of traces, which may contain credentials. A key without a value counts as absent.
func (d *decoder) readTraces(value *yaml.Node, key string) *Traces {
	if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
		return nil
	}
	t := &Traces{Options: d.traces()}
	t.secrets = d.options(value, t.Options, key)
	return t
}

// options decodes and checks options that may contain credentials, and returns the credentials.
func (d *decoder) options(value *yaml.Node, o Options, key string) []secret {
	d.places[key] = value
	inner := decoder{input: d.input, secrets: &secrets{alone: d.alone, lookupEnv: d.lookupEnv, readFile: d.readFile}}
	before := len(d.errs)
	inner.value(value, reflect.ValueOf(o).Elem(), key, nil)
	found := inner.secrets.found
	if len(d.errs) == before { // otherwise Validate would report values that could not be read
		if err := validateOptions(o, found, d.alone); err != nil {
			inner.invalid(key, hide(err.Error(), found))
		}
	}
	return found
}

// validateOptions checks options, and that credentials are not sent in clear text. Whether options are valid is not known if
// they have credentials that were not read.
func validateOptions(o Options, found []secret, unread bool) error {
	switch err := o.Validate(); {
	case err != nil && unread && len(found) > 0:
		return nil
	case err != nil:
		return err
	}
	to, ok := o.(interface {
		ClearText(reference, value string) error
	})
	if !ok {
		return nil
	}
	for _, c := range found {
		if err := to.ClearText(c.source, c.value); err != nil {
			return err
		}
	}
	return nil
}

// invalid records an error of Validate: at the key, if it starts with a key and a colon.
func (d *decoder) invalid(key, reason string) {
	if name, rest, found := strings.Cut(reason, ": "); found && !strings.ContainsAny(name, " \"") {
		key, reason = key+"."+name, rest
	}
	d.failAt(key, "%s", reason)
}

// SinkFromURL returns the sink for an address of --to: file:changes.jsonl, https://example.com/x, log: or - for
// stdout. The types define the addresses. The sink is named after its type and address, so that the same
// address resumes where it was. A URL's user, password and query are left out, except for the keys in the
// type's Place or as its Identity decides.
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

// typeFor returns the type for an address's scheme: if there are several, the one that claims it, or else the
// one that claims none.
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

// inCloud points to the program with a sink that the reference has and this program lacks.
const inCloud = "only tattler-cloud has this sink; see docs/sinks"

// elsewhere are the additional schemes of tattler-cloud; its tests check them.
var elsewhere = []string{"azureservicebus", "gcppubsub", "sns", "sqs"}

// wanted describes the valid addresses.
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

// Add adds a sink of SinkFromURL to those of a file. A duplicate name is an error.
func (c *Config) Add(s Sink) error {
	if slices.ContainsFunc(c.Sinks, func(other Sink) bool { return other.Name == s.Name }) {
		return fmt.Errorf("add sink: a sink named %s exists already, perhaps with the same address", s.Name)
	}
	c.Sinks = append(c.Sinks, s)
	return nil
}

// sinkName returns the type, with a hash of the address if there is one.
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
	} else if authority, ok := strings.CutPrefix(rest, "//"); ok && scheme != "file" { // several hosts, which package url cannot parse
		authority, _, _ = strings.Cut(authority, "?")
		rest = scheme + "://" + authority[strings.LastIndexByte(authority, '@')+1:]
	} else if scheme != "file" { // a name, such as an ARN: it does not depend on the directory
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

// place returns the part of a query that belongs to the destination, or empty.
func (t *SinkType) place(address string) string {
	_, query, _ := strings.Cut(address, "?")
	values, _ := url.ParseQuery(query) // the type has parsed it
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

// shorten removes possible credentials from an address. If no type takes it, or its type marks it as a
// credential, only the scheme is left, or the host of a web server. An apparent host may be a user with an
// unescaped password, if an @ follows.
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
