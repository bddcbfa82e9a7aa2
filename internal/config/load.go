package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Loader reads configurations. The zero value knows no types of sinks.
type Loader struct {
	// Sinks are the program's types of sinks.
	Sinks []SinkType
	// Traces returns the default options of the program's traces, a new pointer in each call; nil if it has none.
	Traces func() Options
	// Alone leaves the references to credentials unread: they may be those of another machine. Options that have any, and
	// that are not valid without them, are accepted.
	Alone bool
	// LookupEnv and ReadFile find credentials; nil means the process's environment and files.
	LookupEnv func(name string) (string, bool)
	ReadFile  func(path string) ([]byte, error)
}

// Load reads a file. Errors in its content are of type Errors.
func (l *Loader) Load(path string) (*Config, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return l.Parse(path, text)
}

// Parse reads the text of a configuration; errors call it name. The error is of type Errors.
func (l *Loader) Parse(name string, text []byte) (*Config, error) {
	f := &input{name: name, places: map[string]*yaml.Node{}, strange: map[string]bool{}, lines: strings.Split(string(text), "\n")}
	root := f.document(text)
	if root == nil {
		return nil, f.err()
	}
	c := &Config{}
	setDefaults(c)
	d := &decoder{input: f, types: l.Sinks, traces: l.Traces, alone: l.Alone, lookupEnv: l.LookupEnv, readFile: l.ReadFile}
	if d.lookupEnv == nil {
		d.lookupEnv = os.LookupEnv
	}
	if d.readFile == nil {
		d.readFile = readFile
	}
	d.value(root, reflect.ValueOf(c).Elem(), "", nil)
	f.places[""] = nil // a missing top-level key has no line
	c.validate(d)
	if err := f.err(); err != nil {
		return nil, err
	}
	c.file, c.places = name, f.positions()
	return c, nil
}

// document parses the YAML; nil means that an error was recorded.
func (f *input) document(text []byte) *yaml.Node {
	if len(text) > maxFile {
		f.fail(nil, "", "more than 1 MiB: this is not a configuration")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && isEmpty(&doc):
		f.fail(nil, "", "the file is empty; `tattler config init` writes an example")
		return nil
	case err != nil:
		f.syntaxError(err)
		return nil
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		f.fail(&more, "", "a second document; a configuration is a single one")
		return nil
	case !errors.Is(err, io.EOF):
		f.syntaxError(err)
		return nil
	}
	return doc.Content[0]
}

func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null"
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// syntaxError records a YAML syntax error. The library names the line, sometimes the one before.
func (f *input) syntaxError(err error) {
	reason, at := err.Error(), &yaml.Node{}
	if m := yamlLine.FindStringSubmatch(reason); m != nil {
		at.Line, _ = strconv.Atoi(m[1]) // digits only
		reason = reason[len(m[0]):]
	}
	reason = strings.TrimPrefix(reason, "yaml: ")
	for line := max(at.Line, 1); line <= min(at.Line+1, len(f.lines)); line++ {
		if column := indentTab(f.lines[line-1]); column > 0 {
			f.fail(&yaml.Node{Line: line, Column: column}, "", "a tab: YAML is indented with spaces")
			return
		}
	}
	f.fail(at, "", "invalid YAML: %s%s", reason, syntaxHints[reason])
}

// indentTab returns the column of a tab before a line's text, or 0.
func indentTab(line string) int {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return strings.IndexByte(indent, '\t') + 1
}

// syntaxHints explain the most frequent causes of the library's errors.
var syntaxHints = map[string]string{
	"did not find expected alphabetic or numeric character": `; quote a text that begins with * or &: "*"`,
	"mapping values are not allowed in this context":        "; quote a text with a colon and a space",
	"did not find expected key":                             "; check the indentation of this line and the next",
	"did not find expected '-' indicator":                   "; check the indentation of this line and the next",
	"found character that cannot start any token":           "; quote a text that begins with @, ` or %",
	"did not find expected node content":                    "; a bracket is open, or a value is missing",
	"did not find expected ',' or ']'":                      "; a bracket is open, or a comma is missing",
	"did not find expected ',' or '}'":                      "; a brace is open, or a comma is missing",
}
