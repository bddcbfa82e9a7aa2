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

// cleanWord turns a value into one word of a subject. Names in Kubernetes contain no _, so a replacement cannot
// produce another object's name.
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

// checkSubject returns an error if a subject is not valid for publishing, or reserved for the server.
func checkSubject(subject string) error {
	if err := checkWords(subject); err != nil {
		return err
	}
	if len(subject) > maxSubject {
		return fmt.Errorf("the subject is longer than %d bytes", maxSubject)
	}
	if strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "_INBOX.") {
		return fmt.Errorf("%q is reserved: a subject must not begin with $ or _INBOX", subject)
	}
	return nil
}

// checkWords checks the words between the dots.
func checkWords(subject string) error {
	for word := range strings.SplitSeq(subject, ".") {
		switch {
		case word == "":
			return fmt.Errorf("%q has an empty word before, between or after dots", subject)
		case strings.ContainsAny(word, "*>"):
			return fmt.Errorf("%q has a wildcard", subject)
		case strings.ContainsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
			return errors.New("a subject must not contain spaces or control characters")
		}
	}
	return nil
}

// covering returns subjects of a stream that cover the output of a template: its literal words, and everything below
// them. It returns nil if the template begins with an action.
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
