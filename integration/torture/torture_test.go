package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// torture is a daemon that is killed repeatedly, and its environment.
type torture struct {
	*testing.T
	rng        *rand.Rand
	namespaces []string
	watcher    *watcher
	hands      *hands
	pace       float32 // of the hands
	observer   *observer
	proxy      *proxy
	disk       *disk
	daemon     *daemon
	all, some  *receiver  // for everything, and for creations and deletions
	slow       *receiver  // for everything, and far behind until the drain
	collector  *collector // of traces
	out        []interval // times from each kill of the API server to its readiness
	still      []interval // times in which the daemon's process stood still
	done       map[string]int
}

// TestTorture kills the daemon repeatedly while everything else fails, too, and then judges.
func TestTorture(t *testing.T) {
	kills := int(kills)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute+time.Duration(kills)*time.Minute)
	defer cancel()
	to := newTorture(ctx, t, 60)
	to.begin(ctx)
	for left := kills; left > 0; {
		deck := to.deck()
		n := min(left, len(deck))
		for i, fault := range deck[:n] {
			began := time.Now()
			to.round(ctx, fault)
			t.Logf("kill %d of %d (%s): %v, %d writes so far", kills-left+i+1, kills, fault.name, time.Since(began).Round(time.Millisecond), to.hands.taken.Load())
		}
		left -= n
	}
	to.drain(ctx)
	to.judge(ctx)
}

// newTorture prepares a torture whose hands make at most pace writes a second; 0: 100 to 300.
func newTorture(ctx context.Context, t *testing.T, pace float32) *torture {
	t.Helper()
	to := &torture{T: t, rng: chance(t), observer: newObserver(t, plane.Kubeconfig()), disk: newDisk(t), done: map[string]int{}}
	to.proxy = newProxy(t, to.observer)
	if to.pace = pace; pace == 0 {
		to.pace = float32(100 + to.rng.IntN(201))
	}
	to.all, to.some = newReceiver(t, rand.New(rand.NewPCG(to.rng.Uint64(), 3))), newReceiver(t, rand.New(rand.NewPCG(to.rng.Uint64(), 4)))
	to.slow = newReceiver(t, rand.New(rand.NewPCG(to.rng.Uint64(), 5)))
	to.slow.pause, to.slow.behind = hookTimeout*4/5, to.all
	to.collector = newCollector(t, rand.New(rand.NewPCG(to.rng.Uint64(), 6)))
	suffix := fmt.Sprintf("%x", time.Now().UnixNano())
	to.namespaces = []string{"torture-a-" + suffix, "torture-b-" + suffix}
	a, err := newAPI()
	if err == nil {
		err = makeNamespaces(ctx, a, to.namespaces...)
	}
	if err == nil {
		to.watcher, err = startWatcher(ctx)
	}
	if err == nil {
		t.Cleanup(to.watcher.stop)
		to.hands, err = newHands(ctx, to.watcher, to.rng, to.pace, to.namespaces...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.hands.stop)
	to.daemon = newObservedDaemon(t, to.journal(), to.observer, to.proxy, to.config())
	if to.rng.IntN(2) == 0 {
		to.daemon.env = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=30"} // stalled connections stay open
	}
	t.Cleanup(func() {
		if dir := os.Getenv(keepEnv); dir != "" && t.Failed() {
			for name, from := range map[string]string{"disk": to.disk.dir, "daemon": to.daemon.dir} {
				if err := os.CopyFS(filepath.Join(dir, suffix, name), os.DirFS(from)); err != nil {
					t.Log(err)
				}
			}
		}
	})
	return to
}

// config has every kind of sink, and streams for the cluster or for each namespace.
func (to *torture) config() fields {
	watched := fields{"resources": fields{"include": kindNames()}}
	if to.rng.IntN(2) == 0 {
		watched["namespaces"] = fields{"include": to.namespaces} // one stream each
	}
	hook := func(name string, r *receiver, more fields) fields {
		sink := fields{
			"name": name, "retry": fields{"min": "20ms", "max": "300ms"},
			"webhook": fields{"url": r.URL + "/" + name, "timeout": hookTimeout.String(), "secret": hookSecret, "parallel": 1 + to.rng.IntN(4)},
		}
		for k, v := range more {
			sink[k] = v
		}
		return sink
	}
	return fields{
		"cluster": fields{"name": "torture"},
		"watch":   []fields{watched},
		"redact":  []fields{{"resources": []string{"configmaps"}, "paths": []string{"data.hush"}}},
		"journal": fields{"path": to.journal(), "retain": fields{"size": "900Mi"}},
		"traces":  fields{"endpoint": to.collector.URL, "timeout": hookTimeout.String()},
		"sinks": []fields{
			{
				"name": "file", "snapshots": true, "retry": fields{"min": "20ms", "max": "300ms"},
				"file": fields{"path": to.changes(), "rotate": fields{"size": "1Mi", "keep": 1000}},
			},
			hook("all", to.all, nil),
			hook("slow", to.slow, nil),
			hook("some", to.some, fields{"where": `op == "created" || op == "deleted"`, "maxBytes": "8Ki"}),
			{"name": "stdout", "log": fields{"format": "json"}, "retry": fields{"min": "20ms", "max": "300ms"}},
		},
	}
}

func kindNames() []string {
	var names []string
	for _, r := range kinds {
		names = append(names, r.name())
	}
	return names
}

func (to *torture) journal() string { return filepath.Join(to.disk.dir, "journal.db") }

func (to *torture) changes() string { return filepath.Join(to.disk.dir, "changes.jsonl") }

// trouble is a failure during a round, while the daemon runs or while it is down.
type trouble struct {
	name     string
	forgets  bool // the server may forget its history
	up, down func(context.Context) error
}

// deck returns the troubles of the next rounds: each trouble once, some of the connections more often, in
// random order.
func (to *torture) deck() []trouble {
	p := to.proxy
	forget := func(ctx context.Context) error { return errors.Join(plane.Compact(ctx), to.restart(ctx)) }
	writes := func(n int64) func(context.Context) error {
		return func(ctx context.Context) error { return to.hands.some(ctx, n) }
	}
	deck := []trouble{
		{name: "nothing"},
		{name: "nothing, a little later", down: writes(20)},
		{name: "connections are cut", up: func(ctx context.Context) error {
			for range 3 {
				p.cut()
				pause(ctx, to.between(50, 300))
			}
			return nil
		}},
		{name: "connections break within a frame", up: func(ctx context.Context) error {
			p.breakAfter(4<<10 + to.rng.Int64N(60<<10))
			pause(ctx, to.between(300, 1200))
			p.breakAfter(0)
			return nil
		}},
		{name: "the server cannot be reached", up: func(ctx context.Context) error {
			p.refuse(true)
			pause(ctx, to.between(100, 1500))
			p.refuse(false)
			return nil
		}},
		{name: "connections fall silent", up: func(ctx context.Context) error {
			p.silence()
			pause(ctx, to.between(100, 1500))
			return nil
		}},
		{name: "the network stalls", up: func(ctx context.Context) error {
			p.hold()
			pause(ctx, to.between(7000, 12000))
			p.release()
			return to.hands.some(ctx, 20)
		}},
		{name: "the process stands still", up: to.freeze},
		{name: "kills while it catches up", down: func(ctx context.Context) error {
			err := to.hands.some(ctx, 60)
			for range 3 {
				to.daemon.start()
				pause(ctx, to.between(100, 1000))
				to.daemon.kill()
			}
			return err
		}},
		{name: "the API server is killed", forgets: true, up: to.restart},
		{name: "the API server is restarted in order", forgets: true, up: func(ctx context.Context) error {
			return errors.Join(plane.StopAPIServer(ctx), plane.StartAPIServer(ctx))
		}},
		{name: "etcd is killed", forgets: true, up: func(ctx context.Context) error {
			return errors.Join(plane.KillEtcd(), plane.StartEtcd(ctx))
		}},
		{name: "etcd is compacted", forgets: true, up: plane.Compact, down: writes(20)},
		{name: "history is forgotten", forgets: true, up: forget},
		{name: "history is forgotten meanwhile", forgets: true, down: func(ctx context.Context) error { return errors.Join(to.hands.some(ctx, 30), forget(ctx)) }},
		{name: "API server and etcd are killed meanwhile", forgets: true, down: func(ctx context.Context) error {
			return errors.Join(plane.KillAPIServer(), plane.KillEtcd(), plane.StartEtcd(ctx), plane.StartAPIServer(ctx))
		}},
		{name: "the disk is full", up: to.fill},
		{name: "the disk is full, and stays so", up: func(ctx context.Context) error {
			return errors.Join(to.fill(ctx), to.fillFor(ctx, to.between(500, 1000)))
		}},
	}
	to.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// restart kills the API server, starts it, and records the outage.
func (to *torture) restart(ctx context.Context) error {
	err := plane.KillAPIServer()
	from := time.Now()
	err = errors.Join(err, plane.StartAPIServer(ctx))
	to.out = append(to.out, interval{from, time.Now()})
	return err
}

// freeze stops the daemon's process for longer than it needs to notice that it stood still, and waits for the absence.
func (to *torture) freeze(ctx context.Context) error {
	if !to.daemon.alive() {
		return nil
	}
	p := to.daemon.running.cmd.Process
	err := p.Signal(syscall.SIGSTOP)
	still := interval{from: time.Now()}
	pause(ctx, to.between(8000, 15000))
	still.to = time.Now()
	to.still = append(to.still, still)
	return errors.Join(err, p.Signal(syscall.SIGCONT), within(ctx, time.Minute, func() error {
		return to.daemon.reports(still)
	}))
}

func (to *torture) between(least, most int) time.Duration {
	return time.Duration(least+to.rng.IntN(most-least)) * time.Millisecond
}

// begin kills the daemon in its first lists, then lets it complete them.
func (to *torture) begin(ctx context.Context) {
	to.Helper()
	for range 3 {
		to.daemon.start()
		pause(ctx, to.between(200, 1500))
		to.daemon.kill()
	}
	to.daemon.ready(ctx)
	if err := to.watcher.begin(ctx); err != nil {
		to.Fatal(err)
	}
}

// round is a run of the daemon, with a trouble, and its kill.
func (to *torture) round(ctx context.Context, f trouble) {
	to.Helper()
	if !to.daemon.alive() {
		to.daemon.start()
	}
	// A run with a trouble records something before its kill; others are killed at any moment.
	if f.up != nil || to.rng.IntN(3) > 0 {
		to.daemon.ready(ctx)
	}
	pause(ctx, to.between(1, 500))
	to.do(ctx, f, f.up)
	pause(ctx, to.between(1, 700))
	to.daemon.kill()
	to.do(ctx, f, f.down)
	to.done[f.name]++
}

func (to *torture) do(ctx context.Context, f trouble, what func(context.Context) error) {
	to.Helper()
	if what == nil {
		return
	}
	if err := to.observer.during(ctx, to.watcher.api, action{what: f.name, forgets: f.forgets}, what); err != nil {
		to.Fatalf("%s: %v", f.name, err)
	}
}

const noticed = "a full disk was noticed"

// fill makes the disk full until the daemon has noticed.
func (to *torture) fill(ctx context.Context) error {
	if to.disk.fill == nil || !to.daemon.alive() {
		return nil
	}
	pid := to.daemon.running.cmd.Process.Pid
	before := to.daemon.errors.count("cannot record changes")
	for _, worse := range []struct {
		make func(int) error
		most time.Duration // until the daemon notices
	}{{to.disk.fill, 2 * time.Second}, {to.disk.limit, time.Minute}} {
		if err := worse.make(pid); err != nil {
			return err
		}
		err := within(ctx, worse.most, func() error {
			if to.daemon.errors.count("cannot record changes") == before {
				return errors.New("the daemon does not report that nothing can be recorded")
			}
			return nil
		})
		if err == nil {
			to.done[noticed]++
			break
		}
	}
	return to.disk.free(pid)
}

// fillFor makes the disk full for a time.
func (to *torture) fillFor(ctx context.Context, d time.Duration) error {
	if to.disk.fill == nil || !to.daemon.alive() {
		return nil
	}
	pid := to.daemon.running.cmd.Process.Pid
	err := to.disk.fill(pid)
	pause(ctx, d)
	return errors.Join(err, to.disk.free(pid))
}
