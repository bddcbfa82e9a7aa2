// Package config reads the configuration file of `tattler run`: strictly, with errors that name the
// line, the key and what to do.
//
// The comments of the types below are the reference of the keys: docs/config.md, `config explain` and
// the file that `config init` writes are made of them. Which types of sinks there are, the caller says
// (Loader.Sinks): their options are read here, and are otherwise unknown to this package. Whether a
// resource exists only the server knows; it is not checked here.
package config

import (
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/capture/rules"
	"github.com/tattler-dev/tattler/internal/where"
)

// What the first two keys of a file say.
const (
	APIVersion = "tattler.dev/v1alpha1"
	Kind       = "Config"
)

// Config is a configuration file, its defaults filled in.
type Config struct {
	// APIVersion is the version of this form.
	APIVersion string `yaml:"apiVersion" enum:"tattler.dev/v1alpha1"`
	// Kind tells the file from others.
	Kind string `yaml:"kind" enum:"Config"`

	Cluster Cluster `yaml:"cluster"`
	// Watch says what is watched; the first entry that selects a kind decides how all its objects are
	// watched. Without it everything is, but the kinds that are noise.
	Watch []Watch `yaml:"watch"`
	// Quiet adds rules to the built-in ones: updates of nothing but quiet fields are kept, but neither
	// listed nor delivered.
	Quiet []Rule `yaml:"quiet"`
	// Redact adds rules to the built-in ones: what they select is replaced by a keyed hash before
	// anything compares, stores or sends it.
	Redact []Rule `yaml:"redact"`
	// RedactionKey is the file of the key for these hashes: 32 random bytes in base64. It belongs on
	// another volume than the journal: who has both can try values. Without it, it is redaction.key below
	// $XDG_CONFIG_HOME/tattler, and is made there; a file that is named here must exist.
	RedactionKey string  `yaml:"redactionKey"`
	Journal      Journal `yaml:"journal"`
	// Sinks are where changes are delivered to, each with a place of its own in the journal. Without
	// it changes are journaled only.
	Sinks  []Sink `yaml:"sinks"`
	Listen Listen `yaml:"listen"`
	Log    Log    `yaml:"log"`

	file   string
	places map[string]place
}

// place is where a key's value begins; both count from 1.
type place struct{ line, column int }

// Blame is an error about a key of the file, such as watch[0].resources.include[1], that was found where
// the cluster was asked.
func (c *Config) Blame(key, format string, args ...any) *Error {
	at := c.places[key]
	return &Error{File: c.file, Line: at.line, Column: at.column, Key: key, Reason: fmt.Sprintf(format, args...)}
}

// Cluster tells about the cluster that is watched.
type Cluster struct {
	// Name is the cluster's name in events. Without it, it is that of the kubeconfig's current context; in a
	// pod, one made of the UID of the namespace kube-system, such as cluster-1f2e3d4c. A journal keeps the
	// name that it was made with, of which the ids of events are made.
	Name string `yaml:"name"`
}

// Watch selects kinds, and their objects.
type Watch struct {
	// Resources are the kinds, as kubectl names them (pods, deploy, deployments.apps, a category such as
	// all), or globs, in which * stands for any run of characters: of the plural (deploy*), or, with a
	// dot, of plural and group (*.example.com). A name must be one of a kind that the server has; a glob
	// also matches kinds that come later.
	Resources Selection `yaml:"resources"`
	// Namespaces are the namespaces, as names or globs; * is all of them. Where others are included, kinds
	// without namespaces are left out, unless they are included by their name.
	Namespaces Selection `yaml:"namespaces"`
	// LabelSelector selects objects by their labels, as kubectl -l does.
	LabelSelector string `yaml:"labelSelector"`
	// FieldSelector selects objects by what the server offers for their kind, as kubectl does.
	FieldSelector string `yaml:"fieldSelector"`
	// Noise also watches the kinds that are noise where a glob selects them: events, leases, endpoints,
	// endpointslices. A kind that is included by its name is watched in any case.
	Noise bool `yaml:"noise"`
}

// Selection is what is taken, and what of it is not.
type Selection struct {
	// Include lists what is taken. Without it everything is.
	Include []string `yaml:"include"`
	// Exclude lists what is left out of it.
	Exclude []string `yaml:"exclude"`
}

// Rule names fields of kinds.
type Rule struct {
	// Resources are kinds as tattler watch takes them, with a group where wanted: configmaps, deploy,
	// widgets.example.com. A * stands for any run of characters. A redaction rule for a kind that the
	// server does not have is an error, unless it has the group of a custom resource that may come.
	Resources []string `yaml:"resources"`
	// Paths are patterns as docs/paths.md defines them, such as data.*password*.
	Paths []string `yaml:"paths"`
}

// Rules are rules as the packages quiet and redact take them.
func Rules(list []Rule) []rules.Rule {
	out := make([]rules.Rule, len(list))
	for i, r := range list {
		out[i] = rules.Rule{Resources: r.Resources, Paths: r.Paths}
	}
	return out
}

// Journal is where changes are kept.
type Journal struct {
	// Path is the journal's file; --journal overrides it. Without both it is $TATTLER_JOURNAL, else
	// journal.db in a directory for the cluster below $XDG_STATE_HOME/tattler.
	Path string `yaml:"path"`
	// Network allows a file system between machines, such as NFS, which is refused otherwise: a lock there
	// may not keep out a second daemon, and both would damage the journal. It is for who makes sure that
	// there is one.
	Network bool `yaml:"network"`
	// MigrateInPlace has the start of a new version keep no copy of a journal that it has to migrate, for a
	// disk that has no room for one: there is no way back to the version before then, but by a backup.
	MigrateInPlace bool   `yaml:"migrateInPlace"`
	Retain         Retain `yaml:"retain"`
}

// Retain bounds the journal; whichever is reached first counts.
type Retain struct {
	// Age is how long a change is kept; 0 keeps it for ever.
	Age time.Duration `yaml:"age" default:"30d"`
	// Size is how large the journal's file may become; 0 does not bound it. Quiet changes go first, then the
	// oldest. The last states of what is watched stay, and so do the newest changes that take a quarter of it,
	// even if the states alone take more: see docs/operations.md.
	Size Size `yaml:"size" default:"1Gi"`
}

// Sink is a place that changes are delivered to. Besides these keys it has one that is named as its
// type (file, webhook, log), with the options of that type.
type Sink struct {
	// Name is the sink's own, of letters, digits, dots, dashes and underscores. The journal remembers
	// under it what was delivered: a new name begins anew.
	Name string `yaml:"name"`
	// Where is an expression in CEL that chooses changes, such as op == "deleted" || touches("spec.**").
	// Without it every change is delivered, and so is a change on which it fails, with a mark.
	Where string `yaml:"where"`
	// Include adds to an update what is left out of it otherwise: the whole object before or after, or
	// the difference as an RFC 6902 patch.
	Include []string `yaml:"include" enum:"before,after,patch"`
	// MaxBytes bounds the event's JSON; a larger one is cut, and says so (truncated). At least 4Ki; 0
	// does not bound it.
	MaxBytes Size `yaml:"maxBytes" default:"0"`
	// Snapshots also delivers what exists when a kind is seen for the first time.
	Snapshots bool `yaml:"snapshots"`
	// From is where a new sink begins: now, or at the beginning of what the journal has kept.
	From string `yaml:"from" enum:"now,beginning" default:"now"`
	// Paused keeps a new sink from delivering until tattler sinks resume. Once the journal knows the sink,
	// what tattler sinks pause and resume said last holds, and this does not.
	Paused bool  `yaml:"paused"`
	Retry  Retry `yaml:"retry"`

	// Type is the key of the sink's type, and Options what is below it: what SinkType.New returned.
	Type    string  `yaml:"-"`
	Options Options `yaml:"-"`
	// Filter is Where compiled, or nil.
	Filter *where.Expr `yaml:"-"`

	secrets []secret
}

// Retry says how a sink is tried again.
type Retry struct {
	// Min is the wait after a first error; each further one is twice as long.
	Min time.Duration `yaml:"min" default:"1s"`
	// Max is the longest wait.
	Max time.Duration `yaml:"max" default:"5m"`
	// Attempts is how often a change is sent that the receiver refuses for good, before it becomes a dead
	// letter. An error that passes is tried until giveUp.
	Attempts int `yaml:"attempts" default:"3"`
	// GiveUp is for how long one change may hold the sink up, counted from its first error since the daemon's
	// start, before it becomes a dead letter; 0 is for ever. While a receiver is down for longer, it costs one
	// change each time.
	GiveUp time.Duration `yaml:"giveUp" default:"0s"`
}

// Listen is the HTTP server for /metrics, /healthz and /readyz.
type Listen struct {
	// Address is HOST:PORT, or :PORT on every interface. Without it there is no server.
	Address string `yaml:"address"`
	// Pprof also serves Go's profiles at /debug/pprof/. Only a loopback address may.
	Pprof bool `yaml:"pprof"`
}

// Log is the daemon's own log, on stderr.
type Log struct {
	// Format is for people or for machines.
	Format string `yaml:"format" enum:"text,json" default:"text"`
	// Level is the least level that is logged.
	Level string `yaml:"level" enum:"debug,info,warn,error" default:"info"`
}

// Default returns what an empty file would say, apiVersion and kind included.
func Default() *Config {
	c := &Config{APIVersion: APIVersion, Kind: Kind}
	setDefaults(c)
	return c
}
