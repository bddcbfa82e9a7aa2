package diff

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the code prints")

// TestTextGolden compares the report of each file's before and after. A mark for its kind precedes each line. A file's comment
// says why it exists.
func TestTextGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/text/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil || len(a.Files) != 3 {
				t.Fatalf("want before, after and report: %d, %v", len(a.Files), err)
			}
			lines := Text(Objects(decode(t, string(a.Files[0].Data)), decode(t, string(a.Files[1].Data)), nil), TextOptions{})
			var got strings.Builder
			for _, l := range lines {
				fmt.Fprintf(&got, "%c %s\n", " +-=>"[l.Kind], l.Text)
			}
			if *update {
				a.Files[2].Data = []byte(got.String())
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(string(a.Files[2].Data), got.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func change(from, to any) []Change {
	c := Change{Path: Path{{Kind: Field, Name: "x"}}, Op: Replace, From: from, To: to}
	switch {
	case from == nil:
		c.Op = Add
	case to == nil:
		c.Op = Remove
	}
	return []Change{c}
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("line ", i+1)
	}
	return out
}

func TestTextHeads(t *testing.T) {
	text := func(edit func([]string) []string) string { return strings.Join(edit(numbered(30)), "\n") + "\n" }
	same := func(l []string) []string { return l }
	for _, tc := range []struct {
		why      string
		from, to any
		want     string
	}{
		{"texts that look like other types are quoted", "5", int64(5), `x: "5" → 5`},
		{"null, too", "null", "true", `x: "null" → "true"`},
		{"the empty text", "", "a", `x: "" → a`},
		{"padding", " a", "a ", `x: " a" → "a "`},
		{"an arrow of its own", "a → b", "c", `x: "a → b" → c`},
		{"terminal escapes", "a", "\x1b[2Jb\r", `x: a → "\x1b[2Jb\r"`},
		{"text that reorders", "a", "\u202egpj.exe", `x: a → "\u202egpj.exe"`},
		{"invalid UTF-8", "a", "\xff", `x: a → "\xff"`},
		{"other scripts are text", "grün", "日本", "x: grün → 日本"},
		{"whole numbers have no fraction", 1.0, 1.5, "x: 1 → 1.5"},
		{"short lists", []any{"a", "b,c"}, []any{}, `x: [a, "b,c"] → []`},
		{"an object is compared as a whole", map[string]any{}, "a", "x: {} → a"},
		{"hidden", "hidden #4e1f000000000000", "hidden #9c20000000000000", "x: changed (hidden, #4e1f → #9c20)"},
		{"hidden, with equal first digits", "hidden #4e1fa80000000000", "hidden #4e1fa90000000000", "x: changed (hidden, #4e1fa8 → #4e1fa9)"},
		{"hidden, added", nil, "hidden #4e1f000000000000", "x: + hidden #4e1f"},
		{"hidden, removed", "hidden #4e1f000000000000", nil, "x: - hidden #4e1f"},
		{"no longer hidden", "hidden #4e1f000000000000", "y", "x: hidden #4e1f → y"},
		{"a text that only looks hidden", "hidden #4e1f", "hidden #zzzz000000000000", "x: hidden #4e1f → hidden #zzzz000000000000"},
		{"an added text says its length", nil, "a\nb\n", "x: added, 2 lines"},
		{"a removed list", []any{map[string]any{"a": "b"}}, nil, "x: removed"},

		{"one line of a text", text(same), text(func(l []string) []string { l[1] = "new"; return l }), "x: line 2 of 30"},
		{"places", text(same), text(func(l []string) []string { l[1], l[2], l[3], l[8] = "a", "b", "c", "d"; return l }), "x: lines 2-4, 9 of 30"},
		{"only removed: the old numbers", text(same), text(func(l []string) []string { return slices.Delete(l, 4, 6) }), "x: lines 5-6 of 30 removed"},
		{"only added: the new numbers", text(same), text(func(l []string) []string { return slices.Insert(l, 30, "a") }), "x: line 31 of 31 added"},
		{"changed, and removed elsewhere", text(same), text(func(l []string) []string { l[1] = "a"; return slices.Delete(l, 9, 10) }), "x: lines 2, after 9 of 29"},
		{"many places", text(same), text(func(l []string) []string {
			for i := 0; i < 30; i += 3 {
				l[i] = "a"
			}
			return l
		}), "x: lines 1, 4, 7, 10, 13, … of 30"},
		{"only the end", "a\nb", "a\nb\n", "x: newline at the end added"},
		{"the end, too", "a\nb\n", "a\nc", "x: line 2 of 2; newline at the end removed"},
		{"from one line to two", "a", "a\nb", "x: line 2 of 2 added"},
		{"too much", strings.Repeat("a\n", 4000), strings.Repeat("b\n", 5000), "x: 4000 lines replaced by 5000 lines"},
		{"long lists, by item", strs(numbered(30)), strs(slices.Delete(numbered(30), 0, 1)), "x: item 1 of 30 removed"},
	} {
		lines := Text(change(tc.from, tc.to), TextOptions{})
		if lines[0].Text != tc.want {
			t.Errorf("%s: got %s, want %s", tc.why, lines[0].Text, tc.want)
		}
	}
}

// An order is one line if it fits.
func TestTextOrder(t *testing.T) {
	list := func(format string, order ...int) map[string]any {
		var all []any
		for _, i := range order {
			all = append(all, map[string]any{"id": fmt.Sprintf(format, i)})
		}
		return map[string]any{"map": all}
	}
	port := func(n int, protocol string) any { return map[string]any{"port": int64(n), "protocol": protocol} }
	for _, tc := range []struct {
		before, after map[string]any
		want          string
	}{
		{list("n%d", 1, 2, 3), list("n%d", 1, 3, 2), "map: order n2, n3 → n3, n2"},
		{list("%d", 1, 2), list("%d", 2, 1), `map: order "1", "2" → "2", "1"`},
		{list("\x1b[%dm", 1, 2), list("\x1b[%dm", 2, 1), `map: order "\x1b[1m", "\x1b[2m" → "\x1b[2m", "\x1b[1m"`},
		{map[string]any{"ports": []any{port(53, "UDP"), port(53, "TCP")}}, map[string]any{"ports": []any{port(53, "TCP"), port(53, "UDP")}},
			"ports: order [port=53,protocol=UDP], [port=53,protocol=TCP] → [port=53,protocol=TCP], [port=53,protocol=UDP]"},
		{list("variable-%d", 1, 2, 3, 4, 5, 6), list("variable-%d", 2, 3, 4, 5, 6, 1), `map: order of 6 items changed
  - variable-1
    variable-2
    variable-3
    …
    variable-5
    variable-6
  + variable-1`},
	} {
		var got []string
		for _, l := range Text(Objects(tc.before, tc.after, schemas), TextOptions{}) {
			got = append(got, l.Text)
		}
		if got := strings.Join(got, "\n"); got != tc.want {
			t.Errorf("got\n%s\nwant\n%s", got, tc.want)
		}
	}
}

func strs(l []string) any {
	out := make([]any, len(l))
	for i, s := range l {
		out[i] = s
	}
	return out
}

func TestTextBounds(t *testing.T) {
	c := change(nil, strings.Join(numbered(20), "\n"))
	for _, tc := range []struct {
		o    TextOptions
		n    int
		last string
	}{
		{TextOptions{}, 1 + 15 + 1, "    … 5 more lines"},
		{TextOptions{MaxLines: 19}, 1 + 19 + 1, "    … 1 more line"},
		{TextOptions{MaxLines: 20}, 1 + 20, "  + line 20"},
		{TextOptions{MaxLines: -1}, 1 + 20, "  + line 20"},
	} {
		lines := Text(c, tc.o)
		if len(lines) != tc.n || lines[len(lines)-1].Text != tc.last {
			t.Errorf("%+v: %d lines, the last is %q", tc.o, len(lines), lines[len(lines)-1].Text)
		}
	}
	a, b := numbered(9), numbered(9)
	b[4] = "new"
	for context, want := range map[int]int{0: 1 + 2 + 4, 1: 1 + 2 + 2, -1: 1 + 2, 99: 1 + 2 + 8} {
		lines := Text(change(strings.Join(a, "\n"), strings.Join(b, "\n")), TextOptions{Context: context})
		if len(lines) != want {
			t.Errorf("context %d: %d lines, want %d", context, len(lines), want)
		}
	}
}

// TestBlanks: differences in trailing blanks are visible.
func TestBlanks(t *testing.T) {
	lines := Text(change("a\nb", "a\nb \t"), TextOptions{})
	if got := lines[len(lines)-1].Text; got != `  + b\x20\t` {
		t.Errorf("got %q", got)
	}
}

// TestRegions: replacing each region of a by its counterpart in b gives b, with equal lines in between; for small inputs no
// smaller set of edits exists.
func TestRegions(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		gen := func() []string {
			l := make([]string, r.IntN(12))
			for i := range l {
				l[i] = string(rune('a' + r.IntN(4)))
			}
			return l
		}
		a, b := gen(), gen()
		regions, ok := changedRegions(a, b)
		if !ok {
			t.Fatalf("seed %d: gave up", seed)
		}
		var got []string
		at, edits := 0, 0
		for _, g := range regions {
			got = append(append(got, a[at:g.a0]...), b[g.b0:g.b1]...)
			at = g.a1
			edits += g.a1 - g.a0 + g.b1 - g.b0
		}
		got = append(got, a[at:]...)
		if !slices.Equal(got, b) {
			t.Fatalf("seed %d: %q to %q: %v gives %q", seed, a, b, regions, got)
		}
		if want := len(a) + len(b) - 2*longest(a, b); edits != want {
			t.Fatalf("seed %d: %q to %q: %d edits, %d suffice", seed, a, b, edits, want)
		}
	}
}

// longest returns the length of a longest common subsequence, by the textbook's table.
func longest(a, b []string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			if a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			}
		}
	}
	return table[len(a)][len(b)]
}

// FuzzYAML: the text parses to the value, whatever its strings, and nothing in it moves a cursor.
func FuzzYAML(f *testing.F) {
	for _, s := range []string{"", "a", "- a", "a: b", "a #b", "1:30", "2020-01-01", "0x1f", "1_000", "~", "yes", "N", ".inf", "a\nb\n", "a\n\n", " a\nb", "|", "\x1b[2J", "10.0.0.1", "a:", "\u202e", "=", "<<", "a\n \n", "-", "---", "a\tb", "#", "1.2.3.", "+1.2.3", "a ##", "a # b", "a:: b", "a::", "a:#b", "--- a", "... a"} {
		f.Add(s, "k")
		f.Add("v", s)
	}
	f.Fuzz(func(t *testing.T, v, k string) {
		for _, s := range []string{v, k} {
			if strings.ToValidUTF8(s, "") != s || strings.ContainsAny(s, "\ufeff\ufffd") {
				return
			}
			if _, ok := Hidden(s); ok {
				return
			}
		}
		if len(strconv.Quote(k)) > 1000 { // a key of YAML has at most 1,024 characters
			return
		}
		value := map[string]any{k: v, "z": []any{v, map[string]any{k: v, "y": []any{[]any{v}, map[string]any{}}}}}
		text := strings.Join(YAML(value), "\n") + "\n"
		for _, r := range strings.ReplaceAll(strings.ReplaceAll(text, "\n", ""), "\t", "") {
			if !printable(string(r)) {
				t.Fatalf("%q is in the text", r)
			}
		}
		var got map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil || !Equal(value, got) {
			t.Fatalf("%v\n%s\n%s", err, text, cmp.Diff(value, got))
		}
	})
}

// TestTextFits: if not everything fits, context is omitted first, and some of each change stays.
func TestTextFits(t *testing.T) {
	const room = 15
	lines := func(edit func([]string) []string) (minus, plus, context int, last string) {
		a := numbered(60)
		out := Text(change(strings.Join(a, "\n"), strings.Join(edit(slices.Clone(a)), "\n")), TextOptions{})
		for _, l := range out {
			switch l.Kind {
			case RemoveLine:
				minus++
			case AddLine:
				plus++
			case ContextLine:
				context++
			}
		}
		if len(out) > 1+room+1 {
			t.Errorf("%d lines: %v", len(out), out)
		}
		return minus, plus, context, out[len(out)-1].Text
	}
	for _, tc := range []struct {
		why                  string
		at                   []int
		to                   int // lines in each place
		minus, plus, context int
		last                 string
	}{
		{"one place", []int{10}, 1, 1, 1, 4, "    line 13"},
		{"three places", []int{10, 20, 30}, 1, 3, 3, 6, "    line 32"},
		{"five places", []int{10, 20, 30, 40, 50}, 1, 5, 5, 0, "  + new 50"},
		{"six places", []int{5, 15, 25, 35, 45, 55}, 1, 5, 5, 0, "    … 2 more lines"},
		{"a long one", []int{10}, 20, 7, 7, 0, "    … 26 more lines"},
		{"a long one and a short one", []int{10, 50}, 20, 7, 7, 0, "    … 28 more lines"},
	} {
		minus, plus, context, last := lines(func(b []string) []string {
			for i, at := range tc.at {
				for n := range tc.to {
					if at+n < len(b) && (tc.why != "a long one and a short one" || i == 0 || n == 0) {
						b[at+n] = fmt.Sprint("new ", at+n)
					}
				}
			}
			return b
		})
		if minus != tc.minus || plus != tc.plus || context != tc.context || last != tc.last {
			t.Errorf("%s: %d removed, %d added, %d of context, the last is %q", tc.why, minus, plus, context, last)
		}
	}
}
