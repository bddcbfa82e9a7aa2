package main

import "github.com/tattler-dev/tattler/tools/gate"

var (
	// The limits of time bound a hang, also on a slow machine. A shuffled run is never taken from go's cache, which does not
	// notice changes outside of the module. The linters vet all packages, with more checks than go test.
	race  = append([]string{"-race", sqlite}, plain...)
	plain = []string{"-shuffle=on", "-timeout=40m", "-vet=off"}
)

// sqlite compiles SQLite without the race detector, which would take more than half of the time of tests that use a journal.
// SQLite is C translated to Go: it starts no goroutine and does not synchronize. The race detector still sees how the packages
// that call it share a connection. The Makefile has the same flag.
const sqlite = "-gcflags=github.com/ncruces/go-sqlite3-wasm/v6=-race=false"

// groups are the parts of `make test`. Every module with tests is in unit or integration.
var groups = map[string][]gate.Step{
	"lint":  {{Name: "lint", Commands: [][]string{mk("lint")}}},
	"cross": {{Name: "cross", Commands: [][]string{mk("cross")}}},
	"unit": {
		{Name: "unit .", Commands: [][]string{{"tools/preflight.sh", "race"}}, Packages: "./...", Flags: race},
		{Name: "unit cloud", Dir: "cloud", Packages: "./...", Flags: race},
		{Name: "unit tools", Dir: "tools", Packages: "./...", Flags: plain},
	},
	"integration": {
		{Name: "servers of the tests", Commands: [][]string{
			{"tools/preflight.sh", "race"}, mk("control-plane"),
			{"tools/redis.sh"}, {"tools/rabbitmq.sh"}, {"tools/chromium.sh"}, {"tools/axe.sh"},
		}},
		{Name: "devcluster", Dir: "devcluster", Packages: "./...", Flags: race},
		{Name: "integration", Dir: "integration", Packages: "./...", Flags: race},
		{Name: "integration/browser", Dir: "integration/browser", Packages: "./...", Flags: race},
		{Name: "integration/sinks", Dir: "integration/sinks", Packages: "./...", Flags: race},
		{Name: "integration/chart", Dir: "integration/chart", Commands: download, Packages: "./...", Flags: plain},
		{Name: "compat", Dir: "compat", Commands: download, Packages: "./...", Flags: race},
		{Name: "bench", Dir: "bench", Packages: "./...", Flags: race},
		{Name: "examples", Dir: "examples", Packages: "./...", Flags: race},
		{Name: "examples/node-tagger", Dir: "examples/node-tagger", Packages: "./test", Flags: race},
	},
}

// download is for tests that read modules from the cache.
var download = [][]string{{"go", "mod", "download"}}

func mk(target string) []string { return []string{"make", "--no-print-directory", target} }
