package guide

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "../../docs/guide.md"

var update = flag.Bool("update", false, "write the blocks of docs/guide.md")

// block matches a block of the page, with the comment that names its contents.
var block = regexp.MustCompile("(?s)<!-- (code|output) ([a-z0-9 -]+) -->\n```(go|text)\n(.*?)```\n")

// TestPage: the code of the page is the samples', and all of it is on the page.
func TestPage(t *testing.T) {
	text := read(t, page)
	code := regions(t)
	used := map[string]bool{}
	samples := map[string]bool{"tests-clientgo": true, "tests-tattler": true}
	for _, s := range sections {
		samples[s.name+"-clientgo"], samples[s.name+"-tattler"] = true, true
	}
	marked := 0
	compare(t, text, func(kind, names, old string) string {
		marked++
		if kind != "code" {
			for _, name := range strings.Fields(names) {
				if !samples[name] {
					t.Errorf("the page has the output of %s, which does not exist", name)
				}
			}
			return old
		}
		used[names] = true
		want, ok := code[names]
		if !ok {
			t.Errorf("the page has the code of %s, which does not exist", names)
		}
		return want
	})
	if all := len(regexp.MustCompile("(?m)^```[a-z]+$").FindAllString(text, -1)); all != marked {
		t.Errorf("%d of the page's %d blocks say what they have", marked, all)
	}
	for name := range code {
		if !used[name] {
			t.Errorf("the page does not have the code of %s", name)
		}
	}
}

// comparePage compares the page's outputs with the printed ones; an output of several samples is the output of each.
// Outputs of samples that did not run are left alone.
func comparePage(t *testing.T, printed map[string]string) {
	t.Helper()
	used := map[string]bool{}
	compare(t, read(t, page), func(kind, names, old string) string {
		if kind != "output" {
			return old
		}
		want := old
		for i, name := range strings.Fields(names) {
			used[name] = true
			got, ran := printed[name]
			switch {
			case !ran:
			case i > 0 && got != want:
				t.Errorf("%s print different texts:\n%s\n%s", names, want, got)
			default:
				want = got
			}
		}
		return want
	})
	for name := range printed {
		if !used[name] {
			t.Errorf("the page does not have what %s printed:\n%s", name, printed[name])
		}
	}
}

// compare compares each block with its wanted contents, or writes them.
func compare(t *testing.T, text string, want func(kind, names, old string) string) {
	t.Helper()
	written := block.ReplaceAllStringFunc(text, func(b string) string {
		m := block.FindStringSubmatch(b)
		kind, names, language, old := m[1], m[2], m[3], m[4]
		if (kind == "code") != (language == "go") {
			t.Errorf("the %s %s is a block of %s", kind, names, language)
		}
		now := want(kind, names, old)
		if now != old && !*update {
			t.Errorf("the page has this as the %s %s:\n%s\nand it is:\n%s\ngo test -update writes it", kind, names, old, now)
		}
		return fmt.Sprintf("<!-- %s %s -->\n```%s\n%s```\n", kind, names, language, now)
	})
	if *update && written != text {
		if err := os.WriteFile(page, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// regions are those of the samples' files, one level of indentation less where they have one.
func regions(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	region := regexp.MustCompile(`(?s)\t*//guide:begin (\S+)\n(.*?\n)\t*//guide:end\n`)
	all := map[string]string{}
	for _, file := range files {
		for _, m := range region.FindAllStringSubmatch(read(t, file), -1) {
			name, code := m[1], m[2]
			if all[name] != "" {
				t.Errorf("two regions are called %s", name)
			}
			if strings.HasPrefix(code, "\t") {
				code = strings.TrimPrefix(strings.ReplaceAll(code, "\n\t", "\n"), "\t")
			}
			all[name] = code
		}
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
