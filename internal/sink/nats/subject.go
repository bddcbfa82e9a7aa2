package nats

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/tattler-dev/tattler/internal/sink"
)

// subjects compiles the template of a subject.
func subjects(template string) (*sink.Name, error) {
	return sink.NewName(template, cleanWord, checkSubject)
}

// cleanWord makes of a value one word of a subject. Names in Kubernetes have no _, so that nothing that is
// replaced becomes another object's name.
func cleanWord(value string) string {
	if value == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '*' || r == '>' || unicode.IsSpace(r) || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, value)
}

// checkSubject says why nobody can publish to a subject, or nobody but the server should.
func checkSubject(subject string) error {
	if err := checkWords(subject); err != nil {
		return err
	}
	if len(subject) > maxSubject {
		return fmt.Errorf("the subject is longer than %d bytes", maxSubject)
	}
	if strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "_INBOX.") {
		return fmt.Errorf("%q is the server's: a subject does not begin with $ or _INBOX", subject)
	}
	return nil
}

// checkWords checks the words between the dots.
func checkWords(subject string) error {
	for word := range strings.SplitSeq(subject, ".") {
		switch {
		case word == "":
			return fmt.Errorf("%q has nothing before, between or behind dots", subject)
		case strings.ContainsAny(word, "*>"):
			return fmt.Errorf("%q has a wildcard", subject)
		case strings.ContainsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
			return errors.New("a subject has neither spaces nor control characters")
		}
	}
	return nil
}

// covering are subjects of a stream for all that a template makes: its first words, and all below them.
// Nil where it begins with an action.
func covering(template string) []string {
	fixed, _, found := strings.Cut(template, "{{")
	if !found {
		return []string{template}
	}
	end := strings.LastIndexByte(fixed, '.')
	if end < 0 {
		return nil
	}
	return []string{fixed[:end] + ".>"}
}
