package redact

import (
	"strings"
	"sync"
)

// facts are the properties of a field that follow from its name.
type facts struct {
	kind      kindOfName
	trait     trait
	command   bool       // see isCommandField
	container kindOfName // see containers
	copy      bool       // may be an annotation that repeatsManifest recognizes
	plain     bool       // none of these, nor a name that fieldKind or run.field know
}

// factsOf returns the facts of a name. They are cached, because objects use few names again and again.
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
		clear(remembered.facts) // also bounds names that users invent
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
	f := facts{
		kind: findKind(name), trait: traitOf(name), command: isCommandField(name), container: containerKind(name),
		copy: exactCopies[name] || copyEnding(name) != "",
	}
	f.plain = f == (facts{}) && !judged[name] && fieldKind("", name, f) == plainName && !strings.EqualFold(name, "key")
	return f
}

// judged are fields that run.field knows by their names, some of them by what they are in.
var judged = set(`stringData auth _auth users list description`)

// containerKind returns what the texts in a container are.
func containerKind(name string) kindOfName {
	switch {
	case len(name) < 24 && containers[strings.ToLower(withoutDashes.Replace(name))]:
		return credentialName
	case name == "HttpHeaders", name == "bearer", name == "serviceKeys": // of Docker, Composer, and notifications of Argo CD
		return wordName
	}
	return plainName
}
