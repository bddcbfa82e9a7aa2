package main

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// toLabels turns tags into labels. Characters that a label cannot have are replaced with _ or cut off. A tag is left out
// if nothing remains of its key, or if another tag has its label already; either is logged.
func toLabels(prefix string, tags map[string]string, log *slog.Logger) map[string]string {
	labels := map[string]string{}
	from := map[string]string{}
	// Keys that fit as they are come first, so that no other one takes their label.
	keys := slices.SortedFunc(maps.Keys(tags), func(a, b string) int {
		if x, y := clean(a) == a, clean(b) == b; x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, key := range keys {
		name, value := clean(key), clean(tags[key])
		other, taken := from[name]
		switch {
		case name == "":
			log.Warn("a tag is left out: nothing of its key can be in a label", "tag", key)
			continue
		case taken:
			log.Warn("a tag is left out: another one has its label", "tag", key, "other", other)
			continue
		case name != key || value != tags[key]:
			log.Warn("a tag is changed to fit a label", "tag", key, "value", tags[key], "label", prefix+name, "its value", value)
		}
		from[name] = key
		labels[prefix+name] = value
	}
	return labels
}

// clean turns a text into one that can be the name or the value of a label.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if alphanumeric(r) || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, s)
	s = s[:min(len(s), validation.LabelValueMaxLength)]
	return strings.TrimFunc(s, func(r rune) bool { return !alphanumeric(r) })
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
