package chart

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"sigs.k8s.io/yaml"
)

// panel is a panel of the dashboard.
type panel struct {
	title, about string
	kind         string // stat or timeseries; "" begins a row
	unit         string // of Grafana
	width        int    // of 24
	exprs        []expr
	mappings     map[string]string // what a stat shows instead of a value
}

type expr struct{ query, legend string }

const selected = `{job=~"$job",instance=~"$instance"}`

// panels are the dashboard, from left to right and top to bottom. SEL stands for the selection of jobs and instances.
var panels = []panel{
	{title: "Now"},
	{"Recording", "Whether every kind found at the start is live or forbidden, and the journal can be written.", "stat", "none", 4,
		[]expr{{"min(tattler_settledSEL) * min(tattler_journal_writableSEL)", "recording"}}, map[string]string{"0": "no", "1": "yes"}},
	{"API server", "Whether the API server can be reached.", "stat", "none", 4,
		[]expr{{"min(tattler_api_server_reachableSEL)", "reachable"}}, map[string]string{"0": "away", "1": "reachable"}},
	{"Kinds not live", "Kinds with a stream that is listing or waiting; tattler status says why.", "stat", "none", 4,
		[]expr{{"count(tattler_stream_not_live_timestamp_secondsSEL) or vector(0)", "kinds"}}, nil},
	{"Dead letters", "Changes that receivers refused permanently.", "stat", "none", 4,
		[]expr{{"sum(tattler_sink_dead_lettersSEL)", "changes"}}, nil},
	{"Changes lost in a day", "Changes that the journal's limits removed before a sink received them.", "stat", "none", 4,
		[]expr{{"sum(increase(tattler_sink_lost_totalSEL[1d]))", "changes"}}, nil},
	{"History", "The age of the journal's oldest change.", "stat", "s", 4,
		[]expr{{"time() - min(tattler_journal_oldest_timestamp_secondsSEL)", "age"}}, nil},

	{title: "Changes"},
	{"Changes", "Changes written to the journal, and how many of them are quiet.", "timeseries", "cps", 12, []expr{
		{"sum(rate(tattler_changes_recorded_totalSEL[$__rate_interval]))", "recorded"},
		{"sum(rate(tattler_changes_quiet_totalSEL[$__rate_interval]))", "quiet"},
	}, nil},
	{"Objects by kind", "Watched objects of the ten largest kinds.", "timeseries", "none", 12,
		[]expr{{"topk(10, sum by (resource) (tattler_stream_objectsSEL))", "{{resource}}"}}, nil},
	{"Streams by state", "A stream is a list and its watch.", "timeseries", "none", 8,
		[]expr{{"sum by (state) (tattler_streamsSEL)", "{{state}}"}}, nil},
	{"Gaps and lists", "Lists after the first mean that a watch could not be resumed. A gap means that versions were missed.", "timeseries", "none", 8, []expr{
		{"sum by (resource) (increase(tattler_stream_gaps_totalSEL[$__rate_interval])) > 0", "gaps {{resource}}"},
		{"sum(increase(tattler_stream_lists_totalSEL[$__rate_interval]))", "lists"},
	}, nil},
	{"Audits", "Comparisons of what is known with a list.", "timeseries", "none", 8,
		[]expr{{"sum by (result) (increase(tattler_audits_totalSEL[1h]))", "{{result}}"}}, nil},

	{title: "Sinks"},
	{"Lag", "The age of the first change that a sink has not received.", "timeseries", "s", 12,
		[]expr{{"max by (sink) (tattler_sink_lag_secondsSEL)", "{{sink}}"}}, nil},
	{"Changes behind", "Changes that a sink has not received yet.", "timeseries", "none", 12,
		[]expr{{"max by (sink) (tattler_sink_behind_changesSEL)", "{{sink}}"}}, nil},
	{"Delivered", "Changes that receivers acknowledged.", "timeseries", "cps", 12,
		[]expr{{"sum by (sink) (rate(tattler_sink_delivered_totalSEL[$__rate_interval]))", "{{sink}}"}}, nil},
	{"Failures", "Waits after an error.", "timeseries", "none", 12,
		[]expr{{"sum by (sink) (increase(tattler_sink_failures_totalSEL[$__rate_interval]))", "{{sink}}"}}, nil},

	{title: "Journal and process"},
	{"Journal", "What the journal's file holds, and its limit.", "timeseries", "bytes", 8, []expr{
		{"sum(tattler_journal_bytesSEL)", "used"},
		{"sum(tattler_journal_states_bytesSEL)", "last states"},
		{"sum(tattler_journal_log_bytesSEL)", "write-ahead log"},
		{"sum(tattler_journal_limit_bytesSEL)", "limit"},
	}, nil},
	{"Memory", "Resident memory, and the limit of the Go runtime.", "timeseries", "bytes", 8, []expr{
		{"max(process_resident_memory_bytesSEL)", "resident"},
		{"max(go_gc_gomemlimit_bytesSEL)", "limit"},
	}, nil},
	{"CPU", "Seconds of CPU time a second.", "timeseries", "none", 8,
		[]expr{{"sum(rate(process_cpu_seconds_totalSEL[$__rate_interval]))", "CPU"}}, nil},
}

type object = map[string]any

// dashboard returns Grafana's JSON.
func dashboard() string {
	var all []object
	x, y, height := 0, 0, 0
	for i, p := range panels {
		kind, width, tall := p.kind, p.width, 8
		switch kind {
		case "":
			kind, width, tall = "row", 24, 1
		case "stat":
			tall = 4
		}
		if x+width > 24 {
			x, y = 0, y+height
		}
		one := object{"id": i + 1, "type": kind, "title": p.title, "gridPos": object{"x": x, "y": y, "w": width, "h": tall}}
		x, height = x+width, tall
		if kind != "row" {
			p.fill(one)
		}
		all = append(all, one)
	}
	label := func(name, text string) object {
		query := "label_values(tattler_build_info, " + name + ")"
		return object{
			"name": name, "label": text, "type": "query", "datasource": source, "definition": query, "query": object{"query": query, "refId": name},
			"refresh": 2, "multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
		}
	}
	board := object{
		"title": "Tattler", "uid": "tattler", "tags": []string{"kubernetes", "tattler"}, "schemaVersion": 39, "version": 1, "editable": true,
		"description": "Made by integration/chart. What each metric means: docs/metrics.md.", "timezone": "browser", "refresh": "1m",
		"time": object{"from": "now-6h", "to": "now"}, "panels": all,
		"templating": object{"list": []object{
			{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": object{}},
			label("job", "Job"), label("instance", "Instance"),
		}},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(board); err != nil {
		panic(err)
	}
	return b.String()
}

var source = object{"type": "prometheus", "uid": "${datasource}"}

func (p *panel) fill(one object) {
	var targets []object
	for i, e := range p.exprs {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": strings.ReplaceAll(e.query, "SEL", selected), "legendFormat": e.legend,
		})
	}
	defaults := object{"unit": p.unit, "min": 0}
	if p.mappings != nil {
		options := object{}
		for value, text := range p.mappings {
			options[value] = object{"text": text, "color": map[string]string{"0": "red", "1": "green"}[value]}
		}
		defaults["mappings"] = []object{{"type": "value", "options": options}}
	}
	one["description"], one["datasource"], one["targets"] = p.about, source, targets
	one["fieldConfig"] = object{"defaults": defaults, "overrides": []object{}}
}

// TestDashboard compares the chart's dashboard with what is above.
func TestDashboard(t *testing.T) {
	file := chartDir + "/files/dashboard.json"
	if *update {
		if err := os.WriteFile(file, []byte(dashboard()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(read(t, file)) != dashboard() {
		t.Errorf("%s differs from the panels in this test (-update writes it)", file)
	}
}

// absent are metrics that the daemon omits at first: docs/metrics.md says when.
var absent = map[string][]string{
	"tattler_stream_not_live_timestamp_seconds": {"resource"},
	"tattler_journal_states_bytes":              nil,
	"tattler_journal_cut_timestamp_seconds":     nil,
	"tattler_audits_total":                      {"resource", "compared", "result"},
	"tattler_stream_gaps_total":                 {"resource"},
	"up":                                        {"job", "instance"}, // Prometheus has it
}

// scraped are labels that Prometheus adds.
var scraped = []string{"job", "instance"}

var (
	sample   = regexp.MustCompile(`(?m)^([a-z_][a-z0-9_]*)(?:\{(.*)\})? \S+$`)
	ofSample = regexp.MustCompile(`([a-z_]+)="`)
	variable = strings.NewReplacer("$__rate_interval", "5m")
)

// checkDashboard parses each expression of the dashboard and of the alerts: its metrics, and the labels that it selects
// and groups by, must be in the daemon's own metrics.
func checkDashboard(t *testing.T, text string) {
	t.Helper()
	known := map[string][]string{}
	for name, labels := range absent {
		known[name] = labels
	}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		labels := []string{}
		for _, l := range ofSample.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		known[m[1]] = labels
	}
	for where, e := range expressions(t) {
		checkExpression(t, where, e, known)
	}
	if len(known) < 40 {
		t.Errorf("only %d metrics:\n%s", len(known), text)
	}
}

// expressions returns those of the dashboard and of the alerts, by title.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr, LegendFormat string }
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := json.Unmarshal(read(t, chartDir+"/files/dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(read(t, chartDir+"/files/alerts.yaml"), &alerts); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range board.Panels {
		for _, e := range p.Targets {
			all[p.Title+" "+e.RefID] = variable.Replace(e.Expr)
		}
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			all[r.Alert] = r.Expr
		}
	}
	if len(all) < 30 {
		t.Errorf("only %d expressions", len(all))
	}
	return all
}

func checkExpression(t *testing.T, where, text string, known map[string][]string) {
	t.Helper()
	e, err := metricsql.Parse(text)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, text)
		return
	}
	var labels, grouped []string
	metricsql.VisitAll(e, func(e metricsql.Expr) {
		switch e := e.(type) {
		case *metricsql.MetricExpr:
			for _, filters := range e.LabelFilterss {
				name := filters[0].Value
				has, found := known[name]
				if filters[0].Label != "__name__" || !found {
					t.Errorf("%s: the daemon has no metric %s: %s", where, name, text)
				}
				labels = append(labels, has...)
				for _, f := range filters[1:] {
					if !slices.Contains(has, f.Label) && !slices.Contains(scraped, f.Label) {
						t.Errorf("%s: %s has no label %s: %s", where, name, f.Label, text)
					}
				}
			}
		case *metricsql.AggrFuncExpr:
			grouped = append(grouped, e.Modifier.Args...)
		case *metricsql.BinaryOpExpr:
			grouped = append(grouped, e.GroupModifier.Args...)
		}
	})
	for _, l := range grouped {
		if !slices.Contains(labels, l) && !slices.Contains(scraped, l) {
			t.Errorf("%s: no metric of it has the label %s: %s", where, l, text)
		}
	}
}
