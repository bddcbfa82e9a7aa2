package ops

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/internal/control"
)

const (
	// alertsFile holds the shipped alerts.
	alertsFile = "../../deploy/prometheus/alerts.yaml"
	// runbook is the page that says what to do about each, before the anchor of a heading.
	runbook = "https://github.com/tattler-dev/tattler/blob/main/docs/operations.md#"
)

// TestDocsAreFresh generates docs/metrics.md from the code.
func TestDocsAreFresh(t *testing.T) {
	text, err := os.ReadFile("testdata/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range metrics {
		labels := ""
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.name, typeOf(m), labels, m.help)
	}
	golden(t, "../../docs/metrics.md", strings.Replace(string(text), "{{metrics}}\n", table.String(), 1))
}

func typeOf(m metric) string {
	if m.kind == counter {
		return "counter"
	}
	return "gauge"
}

// TestAlerts checks the alert rules as far as possible without Prometheus: their form, that their metrics,
// labels and states exist, and that docs/operations.md describes each of them, and no others.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For string
				Labels           map[string]string
				Annotations      struct {
					Summary, Description string
					Runbook              string `yaml:"runbook_url"`
				}
			}
		}
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, heading := range regexp.MustCompile("(?m)^### (Tattler[A-Za-z]+)$").FindAllStringSubmatch(string(page), -1) {
		documented[heading[1]] = true
	}
	rules, absence := 0, false
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			if !documented[r.Alert] {
				t.Errorf("docs/operations.md does not say what to do about %s", r.Alert)
			}
			delete(documented, r.Alert)
			if want := runbook + strings.ToLower(r.Alert); r.Annotations.Runbook != want { // GitHub's anchor of the heading
				t.Errorf("%s: runbook_url is %q, want %q", r.Alert, r.Annotations.Runbook, want)
			}
			absence = absence || strings.Contains(r.Expr, "absent(tattler_build_info)") && strings.Contains(r.Expr, "up{") && r.Labels["severity"] == "critical"
			if r.Alert == "" || r.Annotations.Summary == "" || r.Annotations.Description == "" || r.Labels["severity"] == "" || g.Name == "" {
				t.Errorf("%+v is incomplete", r)
			}
			for _, p := range unknownIn(r.Expr) {
				t.Errorf("%s: %s", r.Alert, p)
			}
		}
	}
	if len(documented) > 0 {
		t.Errorf("docs/operations.md has alerts that are not in %s: %v", alertsFile, documented)
	}
	if !absence {
		t.Error("no alert fires when Tattler is down: metrics that are absent fire none of the others")
	}
	if rules < 5 {
		t.Errorf("%d rules", rules)
	}
}

// TestAlertsFindMistakes shows that the check can fail.
func TestAlertsFindMistakes(t *testing.T) {
	for expr, want := range map[string]string{
		`tattler_streams{state="waiting"} > 0`:              "",
		`up == 1`:                                           "no metric of tattler",
		`tattler_stream{state="waiting"} > 0`:               "no metric tattler_stream",
		`tattler_streams{status="waiting"} > 0`:             "tattler_streams has no label status",
		`tattler_streams{state="dead"} > 0`:                 "no state dead",
		`increase(tattler_sink_dead_letters[5m]) > 0`:       "tattler_sink_dead_letters is not a counter",
		`tattler_sink_lost_total > 0`:                       "tattler_sink_lost_total is a counter",
		`sum by (sink) (rate(tattler_sink_lost_total[5m]))`: "",
	} {
		if got := strings.Join(unknownIn(expr), "; "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

var (
	use      = regexp.MustCompile(`(\w+\()?\b(tattler_\w+)(?:\{([^}]*)\})?(\[\w+\])?`)
	selector = regexp.MustCompile(`(\w+)=~?"([^"]*)"`)
)

// unknownIn returns the unknown names in an expression.
func unknownIn(expr string) (problems []string) {
	uses := use.FindAllStringSubmatch(expr, -1)
	if len(uses) == 0 {
		return []string{"no metric of tattler"}
	}
	for _, u := range uses {
		name, labels, over := u[2], u[3], u[4] != ""
		i := slices.IndexFunc(metrics, func(m metric) bool { return m.name == name })
		if i < 0 {
			problems = append(problems, "no metric "+name)
			continue
		}
		switch m := metrics[i]; {
		case over && m.kind != counter && (u[1] == "rate(" || u[1] == "increase("):
			problems = append(problems, name+" is not a counter")
		case !over && m.kind == counter:
			problems = append(problems, name+" is a counter")
		}
		for _, l := range selector.FindAllStringSubmatch(labels, -1) {
			switch {
			case !slices.Contains(metrics[i].labels, l[1]):
				problems = append(problems, name+" has no label "+l[1])
			case l[1] == "state" && name == "tattler_streams" && !slices.Contains(control.StreamStates(), control.StreamState(l[2])):
				problems = append(problems, "no state "+l[2])
			}
		}
	}
	return problems
}
