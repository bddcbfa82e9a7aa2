package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// secret is a credential with its reference in the file.
type secret struct{ value, source string }

// secrets are the credentials of one sink, or of traces.
type secrets struct {
	alone     bool // nothing is read: see Loader
	lookupEnv func(name string) (string, bool)
	readFile  func(path string) ([]byte, error)
	found     []secret
}

// unread stands for a credential that was not read.
const unread = "unread"

// expand replaces ${env:NAME} and ${file:PATH} where credentials belong. $${ is the text ${.
func (d *decoder) expand(text string) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	if d.secrets == nil {
		return "", errors.New("${…} is only for credentials in the options of sinks and traces; write the value itself")
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			b.WriteString(text)
			return b.String(), nil
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(plain + "${")
			text = rest
			continue
		}
		reference, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", errors.New("${ without }; the text ${ is written $${")
		}
		value, err := d.secrets.read(reference)
		if err != nil {
			return "", err
		}
		b.WriteString(before + value)
		text = after
	}
}

func (s *secrets) read(reference string) (value string, err error) {
	kind, name, _ := strings.Cut(reference, ":")
	switch {
	case s.alone && (kind == "env" || kind == "file") && name != "":
		value = unread
	case kind == "env" && name != "":
		var set bool
		if value, set = s.lookupEnv(name); !set {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
	case kind == "file" && name != "":
		text, err := s.readFile(name)
		if err != nil {
			return "", fmt.Errorf("read credential: %w", err)
		}
		value = strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	default:
		return "", fmt.Errorf("${%s} is unknown: want ${env:NAME} or ${file:/path}; the text ${ is written $${", reference)
	}
	if value == "" {
		return "", fmt.Errorf("the credential ${%s} is empty", reference)
	}
	s.found = append(s.found, secret{value, "${" + reference + "}"})
	return value, nil
}

// hide replaces the credentials in a text.
func (s *secrets) hide(text string) string {
	if s == nil {
		return text
	}
	return hide(text, s.found)
}

// hide replaces credentials, also in their URL-escaped and quoted forms. The longest comes first, because one
// may contain another.
func hide(text string, list []secret) string {
	var forms []secret
	for _, s := range list {
		quoted := strconv.Quote(s.value)
		escaped := url.URL{Path: s.value}
		user := url.User(s.value).String()
		for _, form := range []string{s.value, quoted[1 : len(quoted)-1], url.QueryEscape(s.value), url.PathEscape(s.value), escaped.EscapedPath(), user} {
			forms = append(forms, secret{form, s.source})
		}
	}
	slices.SortStableFunc(forms, func(a, b secret) int { return len(b.value) - len(a.value) })
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f.value, f.source)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Hide replaces the sink's credentials in a text, such as an error, by their references in the file. It finds
// them verbatim, in URLs and in quotes.
func (s *Sink) Hide(text string) string { return hide(text, s.secrets) }

// Hide is Sink.Hide for the credentials of traces.
func (t *Traces) Hide(text string) string { return hide(text, t.secrets) }

// maxFile bounds a configuration and a credential, in bytes: a larger file is something else.
const maxFile = 1 << 20

// readFile reads a file, which may be a pipe, up to a limit.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s has more than 1 MiB", path)
	}
	return text, nil
}
