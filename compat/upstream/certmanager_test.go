package upstream

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// certManager is cert-manager, whose tests build their informers from generated factories. They run on the edited
// client-go. They import the package pkg/controller/test, which gains a file that installs our informers.
func certManager() module {
	const (
		gateways     = "pkg/controller/certificate-shim/gateways/controller_test.go"
		ingresses    = "pkg/controller/certificate-shim/ingresses/controller_test.go"
		listenerSets = "pkg/controller/certificate-shim/listenerset/controller_test.go"
	)
	edits := []edit{
		// 50 ms are too short for the notifications on a busy machine: what is expected gets longer, and one that is not has
		// a second to come.
		{
			file: gateways, count: 1, old: "time.Sleep(50 * time.Millisecond)",
			new: "for began := time.Now(); len(mock.added()) < len(test.expectAddCalls) && time.Since(began) < 30*time.Second; {\n" +
				"\t\t\t\ttime.Sleep(10 * time.Millisecond)\n\t\t\t}\n\t\t\ttime.Sleep(time.Second)",
		},
		{file: listenerSets, count: 1, old: "time.Sleep(50 * time.Millisecond)", new: "time.Sleep(time.Second)"},
		{file: listenerSets, count: 2, old: "2*time.Second, 10*time.Millisecond", new: "time.Minute, 10*time.Millisecond"},
		{
			file: ingresses, count: 1, old: "time.AfterFunc(50*time.Millisecond, queue.ShutDown)",
			new: "limit := time.Second\n\t\t\tif test.expectRequeueKey != (types.NamespacedName{}) {\n\t\t\t\tlimit = 30 * time.Second\n\t\t\t}\n" +
				"\t\t\tend := time.AfterFunc(limit, queue.ShutDown)",
		},
		{file: ingresses, count: 1, old: "gotKeys = append(gotKeys, gotKey)", new: "gotKeys = append(gotKeys, gotKey)\n\t\t\t\tend.Reset(time.Second)"},
		{file: gateways, count: 1, old: "mock.callsToAdd", new: "mock.added()"},
		{file: listenerSets, count: 2, old: "mock.callsToAdd", new: "mock.added()"},
	}
	for _, file := range []string{gateways, listenerSets} { // a handler adds to the queue while the test reads it
		edits = append(edits,
			edit{file: file, count: 1, old: "import (\n", new: "import (\n\t\"slices\"\n\t\"sync\"\n"},
			edit{file: file, count: 1, old: "type mockWorkqueue struct {\n", new: "type mockWorkqueue struct {\n\tmu sync.Mutex\n"},
			edit{
				file: file, count: 1,
				old: "\tm.callsToAdd = append(m.callsToAdd, arg0)\n}\n",
				new: "\tm.mu.Lock()\n\tdefer m.mu.Unlock()\n\tm.callsToAdd = append(m.callsToAdd, arg0)\n}\n\n" +
					"func (m *mockWorkqueue) added() []types.NamespacedName {\n" +
					"\tm.mu.Lock()\n\tdefer m.mu.Unlock()\n\treturn slices.Clone(m.callsToAdd)\n}\n",
			})
	}
	return module{path: "github.com/cert-manager/cert-manager", edits: edits, overlay: "testdata/certmanager"}
}

// controllerTests is a package of cert-manager with the number of tests and subtests that pass in it and the number of
// informers of ours that they construct. The tests of a slow package sleep for half a minute or longer; they run with
// allEnv only.
type controllerTests struct {
	pkg              string
	cases, informers int
	slow             bool
}

var controllers = []controllerTests{
	{pkg: "certificate-shim/gateways", cases: 7, informers: 12},
	{pkg: "certificate-shim/ingresses", cases: 7, informers: 12},
	{pkg: "certificate-shim/listenerset", cases: 6, informers: 15},
	{pkg: "certificates/keymanager", cases: 19, informers: 34},
	{pkg: "certificates/readiness", cases: 27, informers: 65},
	{pkg: "certificates/requestmanager", cases: 28, informers: 78},
	{pkg: "certificates/revisionmanager", cases: 19, informers: 20},
	{pkg: "certificaterequests/approver", cases: 10, informers: 9},
	{pkg: "certificates/trigger", cases: 46, informers: 45, slow: true},
	{pkg: "certificates/issuing", cases: 69, informers: 198, slow: true},
	{pkg: "certificaterequests/selfsigned", cases: 26, informers: 82, slow: true},
	{pkg: "certificate-shim", cases: 170, informers: 85, slow: true},
	{pkg: "certificaterequests", cases: 24, informers: 92, slow: true},
}

// TestCertManager runs the tests of cert-manager's controllers on informers of ours. With handlers that are deaf to
// updates a test must fail.
func TestCertManager(t *testing.T) {
	t.Parallel()
	const root = "pkg/controller/"
	m, client := certManager(), clientGo()
	dir := m.prepare(t)
	selected := controllers
	if os.Getenv(allEnv) == "" {
		selected = slices.DeleteFunc(slices.Clone(controllers), func(c controllerTests) bool { return c.slow })
	}
	var packages []string
	for _, c := range selected {
		packages = append(packages, root+c.pkg)
	}
	// Without the race detector, which would take minutes to compile: the suites of client-go run with it.
	programs := buildTests(t, map[string]string{m.path: dir, client.path: client.prepare(t)}, false, m.path, packages...)
	t.Run("fault", func(t *testing.T) {
		pkg := root + "certificate-shim/gateways"
		r := run(t, programs[pkg], filepath.Join(dir, pkg), []string{faultEnv + "=deaf"}, "-test.run=^Test_controller_Register$")
		if !r.failed || r.informers == 0 {
			t.Errorf("with handlers that are deaf to updates the test must fail:\n%s", tail(r.output))
		}
	})
	// The tests mostly sleep, so the programs run at the same time: more of them than t.Parallel would allow.
	ctx, cancel := beforeTimeout(t)
	defer cancel()
	results, errs := make([]result, len(selected)), make([]error, len(selected))
	var running sync.WaitGroup
	for i, pkg := range packages {
		temp := t.TempDir()
		running.Go(func() { results[i], errs[i] = runProgram(ctx, temp, programs[pkg], filepath.Join(dir, pkg), nil) })
	}
	running.Wait()
	cases, informers := 0, 0
	for i, c := range selected {
		r := results[i]
		switch {
		case errs[i] != nil:
			t.Errorf("%s: %v", c.pkg, errs[i])
		case r.failed:
			t.Errorf("tests of %s failed:\n%s", c.pkg, tail(r.output))
		case r.cases != c.cases || r.informers < c.informers:
			t.Errorf("%s: %d tests and subtests passed and constructed %d informers of ours, not %d and %d",
				c.pkg, r.cases, r.informers, c.cases, c.informers)
		}
		cases, informers = cases+r.cases, informers+r.informers
	}
	t.Logf("%d tests and subtests passed and constructed %d informers of ours", cases, informers)
}
