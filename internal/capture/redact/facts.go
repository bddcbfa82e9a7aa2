package redact

import (
	"strings"
	"sync"
)

// facts are what the rules say of a field by its name alone.
type facts struct {
	kind      kindOfName
	trait     trait
	command   bool // see isCommandField
	container bool // see containers
	copy      bool // it may be an annotation that repeatsManifest tells
}

// factsOf returns those of a name. Objects have few names, again and again: they are remembered.
func factsOf(name string) facts {
	if len(name) > maxRemembered {
		return findFacts(name)
	}
	remembered.RLock()
	f, ok := remembered.facts[name]
	remembered.RUnlock()
	if ok {
		return f
	}
	f = findFacts(name)
	remembered.Lock()
	defer remembered.Unlock()
	if len(remembered.facts) >= maxNames {
		clear(remembered.facts) // of names that somebody makes up, too
	}
	remembered.facts[strings.Clone(name)] = f
	return f
}

const (
	maxRemembered = 64 // bytes of a name
	maxNames      = 8192
)

var remembered = struct {
	sync.RWMutex
	facts map[string]facts
}{facts: map[string]facts{}}

func findFacts(name string) facts {
	return facts{
		kind: findKind(name), trait: fieldTraits[name], command: isCommandField(name), container: containers[strings.ToLower(name)],
		copy: exactCopies[name] || copyEnding(name) != "",
	}
}
