// Package config reads the configuration file of `tattler run`, strictly. Its errors name the line and the key,
// and say what to do.
//
// The comments of the types below document the keys: docs/config.md, `config explain` and the file that `config
// init` writes are generated from them. The caller supplies the types of sinks (Loader.Sinks); this package
// reads their options and knows nothing else about them. Whether a resource exists is not checked here, because
// only the server knows.
package config

import (
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/rules"
	"github.com/tattler-dev/tattler/internal/where"
)

// The values of a file's first two keys.
const (
	APIVersion = "tattler.dev/v1alpha1"
	Kind       = "Config"
)

// Config is a configuration file with defaults filled in.
type Config struct {
	// APIVersion is the version of the file format.
	APIVersion string `yaml:"apiVersion" enum:"tattler.dev/v1alpha1"`
	// Kind marks the file as a configuration of Tattler.
	Kind string `yaml:"kind" enum:"Config"`

	Cluster Cluster `yaml:"cluster"`
	// Clusters are several clusters that one daemon records into one journal. This key replaces the key cluster. Each
	// cluster has its own streams, credentials and rights; a cluster that cannot be reached does not delay the others.
	// The other top-level keys apply to all clusters. The journal must be named by journal.path, --journal or
	// $TATTLER_JOURNAL.
	Clusters []NamedCluster `yaml:"clusters"`
	// Watch selects what is watched. The first entry that selects a kind decides how all objects of that kind are
	// watched. Without this key, everything is watched except the noisy kinds (see noise).
	Watch []Watch `yaml:"watch"`
	// Quiet adds rules to the built-in ones. An update that changes only quiet fields is recorded, but neither
	// listed nor delivered.
	Quiet []Rule `yaml:"quiet"`
	// Redact adds rules to the built-in ones. A keyed hash replaces each value that a rule selects, before objects are
	// compared, stored or sent. A rule for a kind that the server does not have is an error, unless the rule is a glob or
	// the kind's group contains a dot, as that of a custom resource does: the kind may appear later.
	Redact []Rule `yaml:"redact"`
	// RedactionKey is the file with the key of the hashes that replace redacted values: 32 random bytes in base64. Keep
	// this file and the journal on different volumes: whoever has both can guess a redacted value and check the guess.
	// A file that is named here must exist. The default is redaction.key in $XDG_CONFIG_HOME/tattler, which is created
	// if it is missing.
	RedactionKey string  `yaml:"redactionKey"`
	Journal      Journal `yaml:"journal"`
	// Sinks are the destinations of changes. The journal keeps a position for each sink. Without sinks, changes are
	// only recorded.
	Sinks []Sink `yaml:"sinks"`
	// Traces is the value of the key traces, with the options of the program (Loader.Traces); nil without the key.
	Traces *Traces `yaml:"-"`
	Listen Listen  `yaml:"listen"`
	Web    Web     `yaml:"web"`
	Log    Log     `yaml:"log"`

	file   string
	places map[string]place
}

// place is the position of a key's value; both count from 1.
type place struct{ line, column int }

// Blame returns an error about a key of the file, such as watch[0].resources.include[1], that only a request to
// the cluster revealed.
func (c *Config) Blame(key, format string, args ...any) *Error {
	at := c.places[key]
	return &Error{File: c.file, Line: at.line, Column: at.column, Key: key, Reason: fmt.Sprintf(format, args...)}
}

// Cluster describes the cluster that is watched.
type Cluster struct {
	// Name is the cluster's name in events. A journal keeps the name that it was created with, because the ids of
	// events depend on it. Default: the kubeconfig's current context; in a pod, a name made from the UID of the
	// namespace kube-system, such as cluster-1f2e3d4c.
	Name string `yaml:"name"`
}

// Watch selects kinds, and their objects.
type Watch struct {
	// Resources are the kinds, as kubectl names them (pods, deploy, deployments.apps, a category such as all), or
	// globs. A glob is compared with the plural (deploy*) or, if it contains a dot, with plural and group
	// (*.example.com); a * in it matches any run of characters. The server must have the kind that a name refers to; a
	// glob also matches kinds that appear later.
	Resources Selection `yaml:"resources"`
	// Namespaces are the namespaces, as names or globs; * means all of them. If include is set and does not
	// contain *, kinds without namespaces are left out unless resources includes them by name.
	Namespaces Selection `yaml:"namespaces"`
	// LabelSelector selects objects by their labels, as kubectl -l does.
	LabelSelector string `yaml:"labelSelector"`
	// FieldSelector selects objects by the fields that the server supports for their kind, as kubectl's
	// --field-selector does.
	FieldSelector string `yaml:"fieldSelector"`
	// Noise also watches noisy kinds that a glob selects: events, leases, endpoints, endpointslices. A kind that is
	// included by name is always watched.
	Noise bool `yaml:"noise"`
}

// Selection has a list to take and a list to leave out.
type Selection struct {
	// Include lists what to take. Without this key, everything is taken.
	Include []string `yaml:"include"`
	// Exclude lists what to leave out.
	Exclude []string `yaml:"exclude"`
}

// Rule selects fields of kinds.
type Rule struct {
	// Resources are kinds, named as for the command tattler watch, with a group where needed: configmaps, deploy,
	// widgets.example.com. A * matches any run of characters.
	Resources []string `yaml:"resources"`
	// Paths are patterns as docs/paths.md defines them, such as data.*password*.
	Paths []string `yaml:"paths"`
}

// Rules returns rules in the form of the packages quiet and redact.
func Rules(list []Rule) []rules.Rule {
	out := make([]rules.Rule, len(list))
	for i, r := range list {
		out[i] = rules.Rule{Resources: r.Resources, Paths: r.Paths}
	}
	return out
}

// Journal configures the journal.
type Journal struct {
	// Path is the journal's file. --journal overrides it. Default: $TATTLER_JOURNAL, else journal.db in a directory per
	// cluster in $XDG_STATE_HOME/tattler.
	Path string `yaml:"path"`
	// Network allows the journal on a network file system, such as NFS. Without this key, the command tattler run
	// refuses such a file system on Linux: a lock there might not keep out a second daemon, and two daemons would
	// damage the journal. FUSE file systems that are known to be remote, such as sshfs, are refused as well. Other FUSE
	// and 9P file systems may be remote, so the daemon only logs a warning, except for fuseblk, which is local. Set
	// this key only if you make sure that there is just one daemon.
	Network bool   `yaml:"network"`
	Retain  Retain `yaml:"retain"`
}

// Retain limits the journal by age and by size, whichever is reached first.
type Retain struct {
	// Age is how long a change is kept; 0 means for ever.
	Age time.Duration `yaml:"age" default:"30d"`
	// Size is how large the journal's file may become; 0 means unlimited. Quiet changes are removed first, then the
	// oldest changes of the namespace that has the most. The last state of each object is never removed, and a quarter
	// of this size is left for changes even if the states alone exceed the size: see docs/operations.md.
	Size Size `yaml:"size" default:"1Gi"`
}

// Sink is a destination of changes. Besides these keys it has one named after its type (file, webhook, log),
// with the options of that type.
type Sink struct {
	// Name identifies the sink, in letters, digits, dots, dashes and underscores. The journal keeps the sink's position
	// under this name, so a renamed sink starts over.
	Name string `yaml:"name"`
	// Where is a CEL expression that selects changes, such as op == "deleted" || touches("spec.**"). Without this key,
	// all changes are selected. Quiet changes are never delivered, and snapshots only if snapshots is true, whatever the
	// expression. If the expression fails on a change, the change is delivered and
	// marked.
	Where string `yaml:"where"`
	// Include adds parts to the events of updates: the whole object before the update, the whole object after it, or an
	// RFC 6902 patch from the object as the last event left it. See docs/event.md#patches for what filters mean for patches.
	Include []string `yaml:"include" enum:"before,after,patch"`
	// MaxBytes limits the size of an event's JSON. It must be at least 4Ki; 0 means unlimited. A larger event is cut
	// and marked as truncated.
	MaxBytes Size `yaml:"maxBytes" default:"0"`
	// Snapshots also delivers the objects that exist when a kind is watched for the first time.
	Snapshots bool `yaml:"snapshots"`
	// From is where a new sink starts: now (only later changes are delivered), or at the beginning of the journal.
	From string `yaml:"from" enum:"now,beginning" default:"now"`
	// Paused keeps a new sink from delivering until the sink is resumed, by the command tattler sinks resume or on the web page.
	// Once the journal knows the sink, this key is ignored: only pausing and resuming count.
	Paused bool  `yaml:"paused"`
	Retry  Retry `yaml:"retry"`

	// Type is the key of the sink's type, and Options its value: the result of SinkType.New.
	Type    string  `yaml:"-"`
	Options Options `yaml:"-"`
	// Filter is the compiled Where, or nil.
	Filter *where.Expr `yaml:"-"`

	secrets []secret
}

// Retry controls how a failed delivery is repeated.
type Retry struct {
	// Min is the wait after the first error; each further wait is twice as long.
	Min time.Duration `yaml:"min" default:"1s"`
	// Max is the longest wait.
	Max time.Duration `yaml:"max" default:"5m"`
	// Attempts is how often a change that the receiver rejects is sent before it becomes a dead letter. Temporary
	// errors are retried until giveUp.
	Attempts int `yaml:"attempts" default:"3"`
	// GiveUp is how long one change may block the sink before the change is set aside as a dead letter; 0 means for
	// ever. The time counts from the first error of the change since the daemon's start. While a receiver is down, one
	// change after another becomes a dead letter, each after this time.
	GiveUp time.Duration `yaml:"giveUp" default:"0s"`
}

// Traces exports an OpenTelemetry trace of each change: when it was seen, journaled, and delivered to each sink.
// docs/operations.md describes the spans. Without this key, nothing is exported.
type Traces struct {
	// Options is the result of Loader.Traces.
	Options Options

	secrets []secret
}

// Listen configures the HTTP server for /metrics, /healthz and /readyz.
type Listen struct {
	// Address is HOST:PORT, or :PORT for every interface. Without this key, there is no server.
	Address string `yaml:"address"`
	// Pprof also serves Go's profiles at /debug/pprof/, on a loopback address only.
	Pprof bool `yaml:"pprof"`
}

// Log configures the daemon's log, on stderr.
type Log struct {
	// Format is the form of each line: text for people or json for machines.
	Format string `yaml:"format" enum:"text,json" default:"text"`
	// Level is the lowest level that is logged.
	Level string `yaml:"level" enum:"debug,info,warn,error" default:"info"`
}

// Default returns the configuration of an empty file, including apiVersion and kind.
func Default() *Config {
	c := &Config{APIVersion: APIVersion, Kind: Kind}
	setDefaults(c)
	return c
}
