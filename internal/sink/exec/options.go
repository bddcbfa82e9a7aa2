package exec

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of an exec sink.
type Options struct {
	// Command is a program and its arguments. No shell interprets them. A program without a slash is looked up in
	// Tattler's own PATH; a relative path with a slash is relative to dir.
	Command []string `yaml:"command"`
	// Batch passes all pending changes (at most 100) to one run of the program, one line each. Otherwise the program
	// runs once per change.
	Batch bool `yaml:"batch"`
	// Env are variables to add to the program's environment. From Tattler's own environment the program gets only HOME,
	// LANG, LC_ALL, PATH, TMPDIR, TZ and USER.
	Env map[string]string `yaml:"env"`
	// Dir is the program's working directory. Default: Tattler's working directory.
	Dir string `yaml:"dir"`
	// Timeout bounds one run; a program that takes longer is killed, on Unix with all its children. Default: 30s.
	Timeout time.Duration `yaml:"timeout"`
	// PermanentExitCodes are the codes with which the program refuses a change for good. After any other code except 0,
	// the change is sent again; the code 75 is meant for that. Default: [65].
	PermanentExitCodes []int `yaml:"permanentExitCodes"`
}

// exDataErr is EX_DATAERR of sysexits.h.
const exDataErr = 65

// Validate returns an error that names the wrong key and shows no credential.
func (o Options) Validate() error {
	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		return errors.New("command: missing; name a program, such as [/usr/local/bin/on-change]")
	case o.Timeout < 0:
		return errors.New("timeout: must not be negative")
	}
	for i, arg := range o.Command {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("command: argument %d contains a NUL", i)
		}
	}
	for name, value := range o.Env {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("env: %q is not a variable name", name)
		case strings.HasPrefix(name, prefix):
			return fmt.Errorf("env: %s is reserved, as are all names that begin with %s", name, prefix)
		case strings.ContainsRune(value, 0):
			return fmt.Errorf("env: the value of %s contains a NUL", name)
		}
	}
	for _, code := range o.PermanentExitCodes {
		if code < 1 || code > 255 {
			return fmt.Errorf("permanentExitCodes: %d is not between 1 and 255", code)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.PermanentExitCodes == nil {
		o.PermanentExitCodes = []int{exDataErr}
	}
	return o
}

// FromURL returns the options of an address for --to: exec:/path/to/program?arg=a&arg=b&batch=true.
func FromURL(address string) (*Options, error) {
	_, rest, _ := strings.Cut(address, ":")
	path, query, _ := strings.Cut(rest, "?")
	if inner, found := strings.CutPrefix(path, "//"); found && strings.HasPrefix(inner, "/") {
		path = inner
	}
	path, err := url.PathUnescape(path)
	if err != nil {
		return nil, errors.New("the program's path is not valid in a URL: % begins an escape, such as %20")
	}
	o := &Options{Command: []string{path}}
	err = sink.Query{"arg": sink.List(&o.Command), "batch": sink.Bool(&o.Batch), "timeout": sink.Duration(&o.Timeout)}.
		Decode(query, " (write an & in an argument as %26)")
	if err != nil {
		return nil, err
	}
	return o, nil
}
