package exec

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Options are the keys of an exec sink.
type Options struct {
	// Command is a program and its arguments. No shell reads it. A program without a slash is looked for
	// in our own PATH; a relative path with one begins in dir.
	Command []string `yaml:"command"`
	// Batch gives one run of the program as many changes as there are (at most 100), one line each;
	// without it each change has a run of its own (false).
	Batch bool `yaml:"batch"`
	// Env is added to the program's environment. Of ours it has only HOME, LANG, LC_ALL, PATH, TMPDIR, TZ
	// and USER.
	Env map[string]string `yaml:"env"`
	// Dir is the program's working directory (ours).
	Dir string `yaml:"dir"`
	// Timeout bounds one run; then the program and what it has started is killed (30 seconds).
	Timeout time.Duration `yaml:"timeout"`
	// PermanentExitCodes are those by which the program says that it will never take a change ([65]). Any
	// other but 0 means that it is to be tried again; 75 is meant for that.
	PermanentExitCodes []int `yaml:"permanentExitCodes"`
}

// exDataErr is EX_DATAERR of sysexits.h.
const exDataErr = 65

// Validate says what is wrong with the options, naming the key, and showing no credential.
func (o Options) Validate() error {
	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		return errors.New("command: an exec sink needs a program, such as [/usr/local/bin/on-change]")
	case o.Timeout < 0:
		return errors.New("timeout: not negative")
	}
	for i, arg := range o.Command {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("command: argument %d holds a NUL", i)
		}
	}
	for name, value := range o.Env {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("env: %q is no name of a variable", name)
		case strings.HasPrefix(name, prefix):
			return fmt.Errorf("env: %s is the sink's own, as all that begins with %s", name, prefix)
		case strings.ContainsRune(value, 0):
			return fmt.Errorf("env: the value of %s holds a NUL", name)
		}
	}
	for _, code := range o.PermanentExitCodes {
		if code < 1 || code > 255 {
			return fmt.Errorf("permanentExitCodes: %d is not from 1 to 255", code)
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

// FromURL makes options of an address for --to: exec:/path/to/program?arg=a&arg=b&batch=true.
func FromURL(address string) (*Options, error) {
	_, rest, _ := strings.Cut(address, ":")
	path, query, _ := strings.Cut(rest, "?")
	if inner, found := strings.CutPrefix(path, "//"); found && strings.HasPrefix(inner, "/") {
		path = inner
	}
	path, err := url.PathUnescape(path)
	if err != nil {
		return nil, errors.New("the program's path is no part of a URL: % begins an escape, as in %20")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("the query is none (not shown: it may hold a credential)")
	}
	o := &Options{Command: append([]string{path}, values["arg"]...)}
	for key, all := range values {
		switch key {
		case "arg":
		case "batch":
			if o.Batch, err = strconv.ParseBool(all[len(all)-1]); err != nil {
				return nil, errors.New("batch is true or false")
			}
		case "timeout":
			if o.Timeout, err = time.ParseDuration(all[len(all)-1]); err != nil {
				return nil, errors.New("timeout is a duration, such as 10s")
			}
		default:
			// Not shown: what stands behind an & in an argument looks like a key.
			return nil, errors.New("unknown key in the query: there are arg, batch and timeout (an & in an argument is %26)")
		}
	}
	return o, nil
}
