package licenses

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// allowed are the licences under which this repository may link code.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// exceptions are other licences of single parts, each with its reason.
var exceptions = []struct{ part, id, why string }{
	{"github.com/eclipse/paho.golang", "EPL-2.0", "offered under EDL-1.0 as well, which is BSD-3-Clause"},
}

// copied are files of others in this repository, with the path of their licence.
var copied = []struct{ name, version, license string }{
	{"htmx", "2.0.11", "internal/web/static/vendor/htmx.LICENSE"},
}

// wordings recognize a licence in a text of lower-case words without punctuation.
var wordings = []struct {
	id  string
	has string // a phrase of the licence
	not string // a phrase that means another one
}{
	{"Apache-2.0", "apache license version 2 0 january 2004", ""},
	{"MIT", "permission is hereby granted free of charge to any person obtaining a copy of this software and associated documentation files", ""},
	{"BSD-3-Clause", "contributors may be used to endorse or promote products derived from this software without specific prior written permission", ""},
	{"BSD-2-Clause", "redistributions in binary form must reproduce the above copyright notice this list of conditions and the following disclaimer", "to endorse or promote products"},
	{"ISC", "this software for any purpose with or without fee is hereby granted provided that the above copyright notice", ""},
	{"0BSD", "this software for any purpose with or without fee is hereby granted the software is provided", ""},
	{"MPL-2.0", "mozilla public license version 2 0 1 definitions", ""},
	{"EPL-2.0", "eclipse public license v 2 0", ""},
	{"Unlicense", "this is free and unencumbered software released into the public domain", ""},
	{"CC0-1.0", "cc0 1 0 universal", ""},
	{"GPL", "gnu general public license version 3 29 june 2007", ""},
	{"GPL", "gnu general public license version 2 june 1991", ""},
	{"LGPL", "gnu lesser general public license version", "mozilla public license version 2 0 1 definitions"},
	{"AGPL", "gnu affero general public license version 3 19 november 2007", ""},
	{"BUSL-1.1", "business source license 1 1", ""},
	{"SSPL-1.0", "server side public license version 1", ""},
	{"Commons-Clause", "commons clause license condition", ""},
}

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// Recognize returns the licences whose wording is in a text, as SPDX names them, sorted. A text may have several.
func Recognize(text string) (ids []string) {
	words := notWord.ReplaceAllString(strings.ToLower(text), " ")
	for _, w := range wordings {
		if strings.Contains(words, w.has) && (w.not == "" || !strings.Contains(words, w.not)) {
			ids = append(ids, w.id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Error lists the parts whose licences are missing, unknown or not allowed.
type Error struct{ Problems []string }

func (e *Error) Error() string {
	return "licences need a look (tools/licenses/check.go lists those that are allowed):\n" + strings.Join(e.Problems, "\n")
}

// Check returns an [*Error] unless each part has a licence, and each of its licence texts is recognized and allowed.
func Check(parts []Part) error {
	var e Error
	for _, p := range parts {
		report := func(format string, args ...any) {
			e.Problems = append(e.Problems, p.Name+" "+p.Version+": "+fmt.Sprintf(format, args...))
		}
		if len(p.IDs()) == 0 {
			report("no licence")
		}
		for _, f := range p.Texts {
			if len(f.IDs) == 0 && !isNotice(f.Name) {
				report("%s is not a known licence", f.Name)
			}
			for _, id := range f.IDs {
				if !permitted(p.Name, id) {
					report("%s in %s is not allowed", id, f.Name)
				}
			}
		}
	}
	if len(e.Problems) > 0 {
		return &e
	}
	return nil
}

func permitted(part, id string) bool {
	if slices.Contains(allowed, id) {
		return true
	}
	for _, x := range exceptions {
		if x.part == part && x.id == id {
			return true
		}
	}
	return false
}
