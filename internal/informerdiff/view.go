package informerdiff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// Views compares every answer of two stores, "" if they are equal. Get, GetByKey and Index are also called for probes, which
// need not exist.
func Views(theirs, ours cache.Indexer, probes ...any) string {
	if d := contents(theirs, ours); d != "" {
		return d
	}
	a, b := answers(theirs, probes), answers(ours, probes)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("theirs: %s\nours:   %s", a[i], b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("theirs gave %d answers, ours %d", len(a), len(b))
	}
	return ""
}

// contents compares the objects, by List, Get and GetByKey.
func contents(theirs, ours cache.Indexer) string {
	a, b := byKey(theirs.List()), byKey(ours.List())
	if d := lines(keysOf(a), keysOf(b)); d != "" {
		return "List: " + d
	}
	for i := range a {
		k := key(a[i])
		if d := content(a[i], b[i]); d != "" {
			return fmt.Sprintf("List: %s: %s", k, d)
		}
		byKey, ok, err := ours.GetByKey(k)
		if d := content(a[i], byKey); d != "" || !ok || err != nil {
			return fmt.Sprintf("GetByKey %s: %s, %t, %v", k, d, ok, err)
		}
		byObject, ok, err := ours.Get(a[i])
		if d := content(a[i], byObject); d != "" || !ok || err != nil {
			return fmt.Sprintf("Get %s: %s, %t, %v", k, d, ok, err)
		}
	}
	return ""
}

// answers lists an indexer's other answers.
func answers(x cache.Indexer, probes []any) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	keys := x.ListKeys()
	slices.Sort(keys)
	say("ListKeys %q", keys)
	say("LastStoreSyncResourceVersion %q", x.LastStoreSyncResourceVersion())
	for _, p := range probes {
		o, ok, err := x.Get(p)
		say("Get %s: %s, %t, %v", key(p), Version(o), ok, err)
		o, ok, err = x.GetByKey(key(p))
		say("GetByKey %s: %s, %t, %v", key(p), Version(o), ok, err)
	}
	names := []string{"no such index"}
	for name := range x.GetIndexers() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := x.ListIndexFuncValues(name)
		slices.Sort(values)
		say("ListIndexFuncValues %s: %q", name, values)
		for _, value := range append(values, "no such value") {
			keys, err := x.IndexKeys(name, value)
			say("IndexKeys %s=%s: %q, %v", name, value, keys, err)
			found, err := x.ByIndex(name, value)
			say("ByIndex %s=%s: %q, %v", name, value, keysOf(byKey(found)), err)
		}
		for _, p := range probes {
			found, err := x.Index(name, p)
			say("Index %s as %s: %q, %v", name, key(p), keysOf(byKey(found)), err)
		}
	}
	return out
}

func byKey(objects []any) []any {
	slices.SortFunc(objects, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	return objects
}

func keysOf(objects []any) []string {
	out := make([]string, 0, len(objects))
	for _, o := range objects {
		out = append(out, key(o)+"@"+Version(o))
	}
	return out
}

func lines(theirs, ours []string) string {
	if slices.Equal(theirs, ours) {
		return ""
	}
	return fmt.Sprintf("theirs %q, ours %q", theirs, ours)
}

// dump formats an object with its contents.
func dump(o any) string {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Sprintf("%T: %v", o, err)
	}
	return fmt.Sprintf("%T %s", o, text)
}
