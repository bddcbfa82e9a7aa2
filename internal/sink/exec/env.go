package exec

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// prefix starts the names of the variables that the sink sets.
const prefix = "TATTLER_"

// inherited lists the variables of our environment that a program gets: what programs cannot do without, and nothing
// that holds a credential.
var inherited = []string{"HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "USER"}

// environment returns the program's environment for some messages. The variables that describe an object are set
// only if there is a single message.
func (o Options) environment(ms []sink.Message) []string {
	vars := map[string]string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			vars[name] = value
		}
	}
	for name, value := range o.Env {
		vars[name] = value
	}
	vars[prefix+"COUNT"] = strconv.Itoa(len(ms))
	if !o.Batch && len(ms) == 1 && ms[0].Event != nil {
		e := ms[0].Event
		r := e.Data.Resource
		for name, value := range map[string]string{
			"ID": e.ID, "OP": string(e.Data.Op), "SOURCE": e.Source, "SUBJECT": e.Subject,
			"GROUP": r.Group, "VERSION": r.Version, "RESOURCE": r.Resource, "KIND": r.Kind,
			"NAMESPACE": r.Namespace, "NAME": r.Name, "FILTER_ERROR": e.Data.FilterError,
		} {
			vars[prefix+name] = strings.ReplaceAll(value, "\x00", "")
		}
	}
	out := make([]string, 0, len(vars))
	for name, value := range vars {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// minToken is the minimum length of an argument that may be a key.
const minToken = 16

// newMask masks the credentials of the options: a program may write them to stderr.
func newMask(o Options) *sink.Mask {
	b := &sink.Mask{}
	for _, value := range o.Env {
		b.Add(sink.MinSecret, value)
	}
	for i, arg := range o.Command {
		if i == 0 || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "./") {
			continue // a path, which errors may name
		}
		b.Add(minToken, arg)
		if _, value, found := strings.Cut(arg, "="); found {
			b.Add(sink.MinWord, value)
		}
	}
	return b
}
