package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// avoid lists words that docs/glossary.md replaces. They are matched in code, comments and docs alike.
var avoid = []struct{ word, instead string }{
	{`\btold\b`, "notified, passed, said; or name the subject"},
	{`\btells? (whether|if|of)\b`, "reports whether; describes"},
	{`\b(is|are|was|were) none\b`, "is not a …, does not exist, is invalid"},
	{`\b(is|are|was|were|has|have|had|any) no more\b|\bno more( of|\.|,|;|:|$)`, "no longer; nothing else"},
	{`\bwhat is no\b`, "not a …"},
	{`\bwhat lacks\b`, "the missing …"},
	{`\bgoes on from\b`, "resumes from"},
	{`(?i)\b(un)?blot`, "scrub"},
	{`(?i)\bexhum|\bBury\b|\bburied\b`, "set aside, replay, drop"},
	{`(?i)misfit`, "undecodable"},
	{`(?i)\bglimpse`, "weak reference"},
	{`(?i)\bwitness`, "newest object, sample; in a test: observer"},
	{`(?i)\bdoubt(s|ed|ed in)?\b`, "history check; uncertain"},
	{`\bloud`, "listed (the opposite of quiet)"},
	{`\btwins?\b`, "informerdiff; the other"},
	{`\bdesk\b`, "sinkadmin"},
	{`(?i)\broomy\b`, "the threshold's meaning"},
}

// stems are parts of all these words: a line without any needs no closer look, which the race detector makes slow.
var stems = []string{"told", "tell", "none", "no more", "what is no", "what lacks", "goes on from", "blot", "exhum", "bury", "buried", "misfit", "glimpse",
	"witness", "doubt", "loud", "twin", "desk", "roomy"}

// plain are phrases that are plain English all the same.
var plain = strings.NewReplacer("there is none", "", "there are none", "", "there was none", "", "there were none", "")

// avoidExempt are the pages that list the words on purpose.
var avoidExempt = []string{"docs/glossary.md", "internal/lint/words_test.go"}

// TestWords fails where a page or a source file uses a word that docs/glossary.md replaces. It has one subtest
// per file: -run TestWords/internal/journal checks one room.
func TestWords(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(avoid))
	for i, a := range avoid {
		patterns[i] = regexp.MustCompile(a.word)
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "out"):
			return fs.SkipDir
		case d.IsDir(), slices.Contains(avoidExempt, rel), !slices.Contains([]string{".go", ".md", ".sh", ".yaml"}, filepath.Ext(rel)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t.Run(rel, func(t *testing.T) {
			for n, line := range strings.Split(string(text), "\n") {
				lower := strings.ToLower(line)
				if !slices.ContainsFunc(stems, func(s string) bool { return strings.Contains(lower, s) }) {
					continue
				}
				for i, re := range patterns {
					if word := re.FindString(plain.Replace(line)); word != "" {
						t.Errorf("%s:%d: %q: write %s:\n\t%s", rel, n+1, word, avoid[i].instead, strings.TrimSpace(line))
					}
				}
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
