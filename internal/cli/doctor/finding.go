package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// Level says how bad a finding is.
type Level string

// The levels. OK: checked, and right. Note: worth knowing, or could not be checked; nothing is wrong. Warning: it works, but
// something will be missing or fail later. Error: tattler run would not start, or not record what it should.
const (
	OK      Level = "ok"
	Note    Level = "note"
	Warning Level = "warning"
	Error   Level = "error"
)

// Section groups findings.
type Section string

// The sections, in the order in which they are printed.
const (
	Configuration Section = "configuration"
	Server        Section = "server"
	Rights        Section = "rights"
	JournalFile   Section = "journal"
	Sinks         Section = "sinks"
	Memory        Section = "memory"
	Daemon        Section = "daemon"
)

// headings are the sections as people read them.
var headings = map[Section]string{
	Configuration: "Configuration", Server: "API server", Rights: "Rights", JournalFile: "Journal", Sinks: "Sinks", Memory: "Memory", Daemon: "Daemon",
}

// Finding is the result of a check.
type Finding struct {
	// Cluster names the cluster that was checked; empty if the file has no clusters, or the check concerns all of them.
	Cluster string  `json:"cluster,omitempty"`
	Section Section `json:"section"`
	// Check names the check, such as server.clock; it is stable. Several findings may have the same name.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Title is one sentence without its period, Meaning says what follows, Action what to do; empty if that is nothing.
	Title   string `json:"title"`
	Meaning string `json:"meaning,omitempty"`
	Action  string `json:"action,omitempty"`
}

func finding(cluster string, section Section, check string, level Level, title, meaning, action string) Finding {
	return Finding{cluster, section, string(section) + "." + check, level, title, meaning, action}
}

// heading is the heading of the section of a finding. The sections about one of several clusters name it.
func (f *Finding) heading() string {
	if f.Cluster != "" && (f.Section == Server || f.Section == Rights) {
		return headings[f.Section] + " of " + terminal.Line(f.Cluster)
	}
	return headings[f.Section]
}

// Report is what -o json prints.
type Report struct {
	Findings []Finding     `json:"findings"`
	Summary  map[Level]int `json:"summary"`
}

// summary counts findings by level; each level has a number.
func summary(all []Finding) map[Level]int {
	n := map[Level]int{OK: 0, Note: 0, Warning: 0, Error: 0}
	for _, f := range all {
		n[f.Level]++
	}
	return n
}

const (
	// fileWidth is the width of lines that are not written to a terminal, and leastWidth that of the narrowest terminal for
	// which lines are broken.
	fileWidth, leastWidth = 80, 40
	// indent is the column at which findings begin: after the level.
	indent = 10
)

// colors of the levels on a terminal that has them.
var colors = map[Level]string{OK: "\x1b[32m", Note: "\x1b[36m", Warning: "\x1b[33m", Error: "\x1b[31m"}

// write prints the findings of each section, in lines that fit the terminal.
func write(out *terminal.IO, all []Finding) error {
	var b strings.Builder
	width := widthOf(out)
	heading := ""
	for _, f := range all {
		if f.heading() != heading {
			if heading != "" {
				b.WriteByte('\n')
			}
			heading = f.heading()
			b.WriteString(heading + "\n")
		}
		level := fmt.Sprintf("%-*s", indent-2, f.Level)
		if out.Color {
			level = colors[f.Level] + level + "\x1b[0m"
		}
		b.WriteString("  " + level)
		b.WriteString(strings.TrimLeft(wrap(f.Title, indent, width), " "))
		if f.Meaning != "" {
			b.WriteString(wrap(f.Meaning, indent+2, width))
		}
		if f.Action != "" {
			b.WriteString(wrap("→ "+f.Action, indent+2, width))
		}
	}
	n := summary(all)
	b.WriteString("\n" + verdict(n) + "\n")
	_, err := io.WriteString(out.Out, b.String())
	return err
}

// widthOf is the width of lines.
func widthOf(out *terminal.IO) int {
	if out.Width == nil || out.Width() == 0 { // not a terminal
		return fileWidth
	}
	return max(leastWidth, out.Width())
}

func verdict(n map[Level]int) string {
	if n[Warning]+n[Error] == 0 {
		return "Nothing is wrong."
	}
	var parts []string
	for _, l := range []Level{Error, Warning} {
		if n[l] > 0 {
			parts = append(parts, terminal.Count(n[l], string(l)))
		}
	}
	return strings.Join(parts, ", ") + "."
}

// wrap breaks a foreign text into lines of a width that begin at a column.
func wrap(text string, column, width int) string {
	var b strings.Builder
	line, used := "", 0
	for _, word := range strings.Fields(terminal.Line(text)) {
		n := len([]rune(word))
		if used > 0 && column+used+1+n > width {
			fmt.Fprintf(&b, "%*s%s\n", column, "", line)
			line, used = "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	fmt.Fprintf(&b, "%*s%s\n", column, "", line)
	return b.String()
}
