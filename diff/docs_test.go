package diff

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocs compares the tables of docs/paths.md with the code.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/paths.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("^`(.*)`$")
	rows := map[string]int{}
	table := ""
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "|") {
			table = ""
			continue
		}
		if table == "" {
			table = cells[0]
			continue
		}
		for i, c := range cells {
			if m := code.FindStringSubmatch(c); m != nil {
				cells[i] = m[1]
			}
		}
		if strings.HasPrefix(cells[0], "---") {
			continue
		}
		rows[table]++
		switch table {
		case "Step":
			if p, err := ParsePath(cells[2]); err != nil || p.String() != cells[2] {
				t.Errorf("%s prints as %s, %v", cells[2], p, err)
			}
		case "Pattern":
			p := pattern(t, cells[0])
			for i, want := range []bool{true, false} {
				path, err := ParsePath(cells[i+1])
				if err != nil || p.Covers(path) != want || path.String() != cells[i+1] {
					t.Errorf("%s selects %s: %v, %v", cells[0], path, !want, err)
				}
			}
		case "Text":
			_, err := ParsePattern(cells[0])
			if err == nil || !strings.HasSuffix(err.Error(), `": `+cells[1]) {
				t.Errorf("%s: %v, want %s", cells[0], err, cells[1])
			}
		}
	}
	if rows["Step"] < 6 || rows["Pattern"] < 10 || rows["Text"] < 4 {
		t.Errorf("tables are missing: %v", rows)
	}
}
