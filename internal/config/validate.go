package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/rules"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/where"
)

// Lower limits: anything less is probably a wrong unit.
const (
	minAge      = time.Minute
	minSize     = Size(1 << 20)
	minMaxBytes = Size(4 << 10)
	minGiveUp   = time.Minute
)

// validate checks what the types do not express.
func (c *Config) validate(d *decoder) {
	for _, key := range []string{"apiVersion", "kind"} {
		if d.places[key] == nil {
			d.failAt(key, "missing; the file must start with apiVersion: %s and kind: %s", APIVersion, Kind)
		}
	}
	if name := c.Cluster.Name; strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		d.failAt("cluster.name", "a name must be one line of text")
	}
	if len(c.Clusters) > 0 && c.Cluster.Name != "" {
		d.failAt("cluster.name", "clusters name themselves: omit the key, or clusters")
	}
	d.clusters(c.Clusters)
	d.watches("watch", c.Watch)
	d.rules("quiet", c.Quiet, false)
	d.rules("redact", c.Redact, true)
	if strings.HasPrefix(c.RedactionKey, "~") {
		d.failAt("redactionKey", "~ is not expanded here: write the full path")
	}
	c.Journal.validate(d)
	d.sinks(c.Sinks)
	c.Listen.validate(d)
	c.Web.validate(d)
}

func (d *decoder) watches(key string, list []Watch) {
	if n := d.places[key]; len(list) == 0 && n != nil && n.Kind == yaml.SequenceNode {
		d.failAt(key, "nothing to watch; omit the key to watch everything")
	}
	for i, w := range list {
		at := fmt.Sprintf("%s[%d]", key, i)
		d.selection(at+".resources", w.Resources, checkResource)
		d.selection(at+".namespaces", w.Namespaces, selection.CheckNamespace)
		if _, _, err := selection.Selectors(w.LabelSelector, ""); err != nil {
			d.failAt(at+".labelSelector", "%v", err)
		}
		if _, _, err := selection.Selectors("", w.FieldSelector); err != nil {
			d.failAt(at+".fieldSelector", "%v", err)
		}
		if i > 0 && list[i-1].takesAll() {
			d.failAt(at, "never reached: %s[%d] selects every kind, and the first entry that selects a kind applies", key, i-1)
		}
	}
}

// takesAll reports whether no kind is left for a later entry.
func (w Watch) takesAll() bool {
	r := w.Resources
	return (len(r.Include) == 0 || slices.Contains(r.Include, "*")) && len(r.Exclude) == 0 && w.Noise
}

// selection checks each name or glob, and that something is left.
func (d *decoder) selection(key string, s Selection, check func(string) error) {
	if n := d.places[key+".include"]; len(s.Include) == 0 && n != nil && n.Kind == yaml.SequenceNode {
		d.failAt(key+".include", "an empty list selects nothing; omit the key to select everything")
	}
	d.each(key+".include", s.Include, check)
	d.each(key+".exclude", s.Exclude, check)
	if slices.Contains(s.Exclude, "*") {
		d.failAt(key, "nothing is left: * excludes everything")
		return
	}
	left := func(name string) bool { return selection.IsGlob(name) || !selection.MatchesAny(s.Exclude, name) }
	if len(s.Include) > 0 && !slices.ContainsFunc(s.Include, left) {
		d.failAt(key, "nothing is left: all of %s is excluded", strings.Join(s.Include, ", "))
	}
}

func (d *decoder) each(key string, list []string, check func(string) error) {
	for i, text := range list {
		if err := check(text); err != nil {
			d.failAt(fmt.Sprintf("%s[%d]", key, i), "%v", err)
		}
	}
}

// resourceForm matches a type as kubectl takes it, or a glob.
var resourceForm = regexp.MustCompile(`^[A-Za-z0-9*]([A-Za-z0-9*-]*[A-Za-z0-9*])?(\.[A-Za-z0-9*-]+)*\.?$`)

func checkResource(text string) error {
	switch {
	case strings.Contains(text, "/"):
		return fmt.Errorf("%q: want a kind; single objects are selected by a fieldSelector, such as metadata.name=web", text)
	case strings.Contains(text, ","):
		return fmt.Errorf("%q: want one kind in each element of the list", text)
	case !resourceForm.MatchString(text), strings.Contains(text, "*") && rules.CheckResource(strings.ToLower(text)) != nil:
		return fmt.Errorf("%q is not a kind: want a name such as pods, deployments.apps or *.example.com", text)
	}
	return nil
}

// rules checks quiet and redact rules as their packages do, with the position of each.
func (d *decoder) rules(key string, list []Rule, redacts bool) {
	random := redact.NewRandomKey() // checks need a key; nothing is redacted with it
	for i, r := range list {
		at := fmt.Sprintf("%s[%d]", key, i)
		if len(r.Resources) == 0 || len(r.Paths) == 0 {
			d.failAt(at, `a rule needs resources and paths; "*" is every resource`)
		}
		d.each(at+".resources", r.Resources, rules.CheckResource)
		d.each(at+".paths", r.Paths, func(text string) error {
			_, err := diff.ParsePattern(text)
			if err == nil && redacts {
				_, err = redact.New(random, []rules.Rule{{Resources: []string{"*"}, Paths: []string{text}}})
			}
			return err
		})
	}
}

func (j Journal) validate(d *decoder) {
	if strings.HasPrefix(j.Path, "~") {
		d.failAt("journal.path", "~ is not expanded here: write the full path")
	}
	if j.Retain.Age != 0 && j.Retain.Age < minAge {
		d.failAt("journal.retain.age", "at least 1m, or 0 to keep everything")
	}
	if j.Retain.Size != 0 && j.Retain.Size < minSize {
		d.failAt("journal.retain.size", "at least %s, or 0 for no limit", minSize)
	}
}

var sinkNameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (d *decoder) sinks(list []Sink) {
	first := map[string]int{}
	for i := range list {
		s, at := &list[i], fmt.Sprintf("sinks[%d]", i)
		other, taken := first[s.Name]
		switch {
		case s.Name == "" && d.places[at+".name"] == nil:
			d.failAt(at+".name", "missing; every sink needs a name")
		case !sinkNameForm.MatchString(s.Name):
			d.failAt(at+".name", "%q: want at most 63 letters, digits, dots, dashes and underscores", s.Name)
		case taken:
			d.failAt(at+".name", "sinks[%d] already has the name %s", other, s.Name)
		default:
			first[s.Name] = i
		}
		if s.Type == "" && !d.strange[at] {
			d.failAt(at, "a sink needs a type: one of the keys %s", strings.Join(d.typeNames(), ", "))
		}
		d.shape(s, at)
	}
}

// shape checks the options that all types of sinks have.
func (d *decoder) shape(s *Sink, at string) {
	if d.places[at+".where"] != nil {
		d.filter(s, at+".where")
	}
	if s.MaxBytes != 0 && s.MaxBytes < minMaxBytes {
		d.failAt(at+".maxBytes", "at least %s, or 0 for no limit", minMaxBytes)
	}
	for i, part := range s.Include {
		if slices.Contains(s.Include[:i], part) {
			d.failAt(fmt.Sprintf("%s.include[%d]", at, i), "%s is listed twice", part)
		}
	}
	switch r := s.Retry; {
	case r.Min < time.Millisecond:
		d.failAt(at+".retry.min", "at least 1ms")
	case r.Max < r.Min:
		d.failAt(at+".retry.max", "%s is less than min, which is %s", r.Max, r.Min)
	case r.Attempts < 1:
		d.failAt(at+".retry.attempts", "at least 1")
	case r.GiveUp != 0 && r.GiveUp < minGiveUp:
		d.failAt(at+".retry.giveUp", "at least %s, or 0 to retry forever", minGiveUp)
	}
}

func (d *decoder) filter(s *Sink, key string) {
	expr, err := where.Compile(s.Where)
	var wrong *where.Error
	switch {
	case d.blamed(key):
	case err == nil:
		s.Filter = expr
	case errors.As(err, &wrong):
		d.errs = append(d.errs, d.misplaced(wrong, key))
	default:
		d.failAt(key, "%v", err)
	}
}

// misplaced returns an error at the position of a mistake in an expression.
func (d *decoder) misplaced(wrong *where.Error, key string) *Error {
	n := d.places[key]
	e := &Error{File: d.name, Line: n.Line, Column: n.Column, Key: key, Reason: wrong.Reason, Excerpt: wrong.Excerpt()}
	if line, column, ok := d.within(n, wrong.Line, wrong.Column); ok {
		e.Line, e.Column = line, column
	} else {
		e.Reason = fmt.Sprintf("in line %d, column %d of the expression: %s", wrong.Line, wrong.Column, wrong.Reason)
	}
	return e
}

// within finds the file position of an offset in a scalar's text, if the text is in the file verbatim: a block
// that starts with |, or a single line.
func (d *decoder) within(n *yaml.Node, line, column int) (fileLine, fileColumn int, ok bool) {
	if n.Style&yaml.LiteralStyle != 0 && n.Line+line <= len(d.lines) {
		begin := d.lines[n.Line] // the block's first line shows the indentation
		return n.Line + line, len(begin) - len(strings.TrimLeft(begin, " ")) + column, true
	}
	if n.Line < 1 || n.Line > len(d.lines) {
		return 0, 0, false
	}
	text := []rune(strings.TrimPrefix(d.lines[n.Line-1], "\ufeff"))
	begin := n.Column - 1
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		begin++
	}
	if begin > len(text) || !strings.HasPrefix(string(text[begin:]), n.Value) || strings.Contains(n.Value, "\n") {
		return 0, 0, false
	}
	return n.Line, begin + column, true
}

func (l Listen) validate(d *decoder) {
	if l.Address == "" {
		if l.Pprof {
			d.failAt("listen.pprof", "without listen.address there is no server")
		}
		return
	}
	host, port, err := net.SplitHostPort(l.Address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		d.failAt("listen.address", "%q: want HOST:PORT, such as 127.0.0.1:8080, or :PORT", l.Address)
		return
	}
	if l.Pprof && !loopback(host) {
		d.failAt("listen.pprof", "profiles are served on a loopback address only; listen.address is %s", l.Address)
	}
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
