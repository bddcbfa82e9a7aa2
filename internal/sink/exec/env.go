package exec

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/internal/sink"
)

// prefix begins the variables that the sink sets.
const prefix = "TATTLER_"

// inherited are the variables of our environment that a program has: what programs cannot do without, and
// nothing that holds a credential.
var inherited = []string{"HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "USER"}

// environment is what the program gets with some messages. What names an object is there where there is one
// message only.
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

// leastToken is how long what may be a key in an argument is at least.
const leastToken = 16

// blotter knows the credentials of the options: a program may write what it got to stderr.
func blotter(o Options) *sink.Blot {
	b := &sink.Blot{}
	for _, value := range o.Env {
		b.Add(sink.LeastPassword, value)
	}
	for i, arg := range o.Command {
		if i == 0 || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "./") {
			continue // paths, which its errors may well name
		}
		b.Add(leastToken, arg)
		if _, value, found := strings.Cut(arg, "="); found {
			b.Add(sink.LeastWord, value)
		}
	}
	return b
}
