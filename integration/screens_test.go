package integration

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// rows is the height of the smallest usual terminal.
const rows = 24

// screensOf returns a command's output on terminals of three widths.
func screensOf(t *testing.T, kubeconfig string, args ...string) map[int]string {
	t.Helper()
	screens := map[int]string{}
	for _, width := range []int{80, 100, 160} {
		screens[width] = screen(t, width, kubeconfig, args...)
	}
	return screens
}

// screen returns a command's output on a terminal, and checks that no line is too long for it.
func screen(t *testing.T, width int, kubeconfig string, args ...string) string {
	t.Helper()
	terminal, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: rows, Cols: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tattler(t), args...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "NO_COLOR=1", "TERM=xterm", "KUBECONFIG="+kubeconfig)
	cmd.Stdout = slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	var out strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := terminal.Read(buf)
		out.Write(buf[:n])
		if err != nil { // EIO once the last writer has closed
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	said := strings.ReplaceAll(out.String(), "\r\n", "\n")
	for line := range strings.Lines(said) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width && !notice.MatchString(line) {
			t.Errorf("%d columns on a screen of %d: %s", n, width, line)
		}
	}
	return said
}

// notice matches a line that is never cut.
var notice = regexp.MustCompile(`^\S+ ! `)

// whatVaries lists what differs between runs, and its replacement in goldens. The truth tests check the real
// values.
var whatVaries = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "HH:MM:SS"},
	{regexp.MustCompile(` +\(\d+ (?:status )?changes?(?:; --(?:flat|story \w+))?\)`), ""},
	{regexp.MustCompile(`\b(for|for at most|existed) (?:less than )?\d+ (?:s|min|h)(?: \d+ (?:s|min))?\b`), "$1 D"},
	{regexp.MustCompile(`\b(?:within|in|after)(?: less than)? \d+ (?:s|min|h)(?: \d+ (?:s|min))?\b`), "in D"},
	{regexp.MustCompile(`\d+ evicted from node-\d+(?: and replaced|(?:, \d+ pods? (?:new|terminating|gone))+)`), "N evicted from NODE and replaced"},
	{regexp.MustCompile(`drain of node-\d+`), "drain of NODE"},
	{regexp.MustCompile(`\b(web|many|db|migrate)-[0-9a-f]{6,10}\b`), "$1-HASH"},
	{regexp.MustCompile(`\b(pod/\S+?)-[b-z2-9]{5}\b`), "$1-NAME"},
	{regexp.MustCompile(`\bnightly-\d+`), "nightly-MINUTE"},
	{regexp.MustCompile(`#[0-9a-f]{4}\b`), "#SUM"},
	{regexp.MustCompile(`it caught up with \d+ changes?, and missed none|nothing changed meanwhile`), "it caught up with N changes, and missed none"},
	{regexp.MustCompile(`(\S) {2,}`), "$1  "},
}

var (
	// slowly matches lines that appear only on a slow machine: the state of a rollout after a minute. late
	// matches the note that a change was seen some seconds after it happened.
	slowly = regexp.MustCompile(`^(?:\S+ )?· +(?:[\w-]+ +)?\S+/\S+ +(?:\d+ pods? [^:]+, )?(?:rolling out|scaled \d+ → \d+): `)
	late   = regexp.MustCompile(` +\(seen \S+\)`)
)

// goldenOptions say how a screen is compared.
type goldenOptions struct {
	keep     int  // number of stories to compare
	anyOrder bool // the stories may come in any order
	away     bool // compare the times at which changes were seen
}

// golden compares the output on several terminals with a file, without the varying parts.
func golden(t *testing.T, name, ns string, screens map[int]string, o goldenOptions) {
	t.Helper()
	var got strings.Builder
	for _, width := range slices.Sorted(maps.Keys(screens)) {
		all := stories(screens[width], ns, o.away)
		all = all[:min(o.keep, len(all))]
		if o.anyOrder {
			slices.SortFunc(all, cmp.Compare[string])
		}
		fmt.Fprintf(&got, "== %d columns\n%s", width, strings.Join(all, ""))
	}
	path := filepath.Join("testdata", "scenarios", strings.ReplaceAll(name, " ", "-")+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, lines := strings.Split(string(file), "\n"), strings.Split(got.String(), "\n")
	for i := range max(len(want), len(lines)) {
		if i >= len(want) || i >= len(lines) || !alike(want[i], lines[i]) {
			t.Errorf("line %d of %s differs (-update rewrites it); got\n%s", i+1, path, got.String())
			return
		}
	}
}

// stories returns the heads of lines with the lines below them, without the varying parts and the objects that
// every namespace has. Only if the daemon was away may changes be seen later than they happened.
func stories(screen, ns string, away bool) []string {
	var all []string
	for line := range strings.Lines(screen) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), ns, "NAMESPACE")
		for _, v := range whatVaries {
			line = v.pattern.ReplaceAllString(line, v.name)
		}
		if !away {
			line = late.ReplaceAllString(line, "")
		}
		line = strings.TrimRight(line, " ") + "\n"
		if n := len(all); n > 0 && strings.HasPrefix(line, " ") {
			all[n-1] += line
		} else {
			all = append(all, line)
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.Contains(s, "cm/kube-root-ca.crt") || slowly.MatchString(s) })
}

// alike compares two lines. The length of the varying parts decides where a line is cut, so the last columns do
// not count.
func alike(a, b string) bool {
	if a == b {
		return true
	}
	const vary = 14
	if !strings.Contains(a+b, "…") {
		return false
	}
	a, _, _ = strings.Cut(a, "…")
	b, _, _ = strings.Cut(b, "…")
	n := max(min(len(a), len(b))-vary, 0)
	return a[:n] == b[:n]
}
