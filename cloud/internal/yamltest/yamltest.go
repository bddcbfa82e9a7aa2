// Package yamltest has helpers for the sinks' tests: options in YAML, and checks of errors.
package yamltest

import (
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Hush stands for a credential in tests. No error may contain it.
const Hush = "hush"

// FromEnvironment is the value of ${env:HUSH} in Load.
const FromEnvironment = "from the environment"

// Decode unmarshals options.
func Decode[O any](t *testing.T, text string) O {
	t.Helper()
	var o O
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// Check checks an error: want is a part of its text, or empty for no error.
func Check(t *testing.T, why string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", why, err, want)
	}
	if err != nil && strings.Contains(err.Error(), Hush) {
		t.Errorf("%s: a credential in %q", why, err)
	}
}

// Kind returns how the pump treats an error: permanent, long (sink.TooLargeError), passing, or none.
func Kind(err error) string {
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &permanent):
		return "permanent"
	case errors.As(err, &long):
		return "long"
	}
	return "passing"
}

// Load loads and validates the options of a sink from YAML.
func Load[O any, P interface {
	*O
	config.Options
}](t *testing.T, name, options string) *O {
	t.Helper()
	l := &config.Loader{
		Sinks: []config.SinkType{{Name: name, New: func() config.Options { return P(new(O)) }}},
		LookupEnv: func(name string) (string, bool) {
			return FromEnvironment, name == "HUSH"
		},
	}
	text := "apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- name: test\n  " + name + ":\n" +
		strings.ReplaceAll("\n"+strings.TrimSpace(options), "\n", "\n    ")
	c, err := l.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return (*O)(c.Sinks[0].Options.(P)) //nolint:forcetypeassert // New made them
}
