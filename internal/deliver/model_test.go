package deliver_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

var (
	seeds = flag.Int("seeds", 12, "how many seeds the model test runs")
	seed  = flag.Uint64("seed", 0, "the only seed that the model test runs")
)

// TestModel runs pumps against random failures of the receiver and the store, crashes, pauses and rewinds, and
// checks the guarantee on what arrived: at least once, in order per object, with stable ids, and nothing
// skipped except poison, which is in the dead letters.
func TestModel(t *testing.T) {
	first, count := uint64(1), uint64(*seeds)
	if *seed != 0 {
		first, count = *seed, 1
	}
	total := tally{}
	for s := first; s < first+count; s++ {
		for _, holds := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, s)
				m.holds = holds
				m.run()
				m.check()
				total.add(m.seen)
			})
			if t.Failed() {
				t.Fatalf("seed %d; run it again with -seed=%d", s, s)
			}
		}
	}
	if *seed == 0 && (total.crashes == 0 || total.repeats == 0 || total.poison == 0 || total.uncommitted == 0 || total.together == 0 || total.dropped == 0 || total.stored == 0) {
		t.Errorf("the faults did not happen: %+v", total)
	}
}

// tally counts the events of a run, so that a run without any fails.
type tally struct{ crashes, uncommitted, repeats, poison, together, dropped, stored int }

func (t *tally) add(o tally) {
	t.crashes += o.crashes
	t.uncommitted += o.uncommitted
	t.repeats += o.repeats
	t.poison += o.poison
	t.together += o.together
	t.dropped += o.dropped
	t.stored += o.stored
}

const modelChanges = 250

// kind is the fate of a change.
type kind int

const (
	wanted kind = iota
	unwanted
	poisonous
	damaged
)

type model struct {
	*testing.T
	r     *rand.Rand
	base  *sinktest.Store
	holds bool            // the sink delivers later
	kinds map[string]kind // by id
	seqs  map[string]int64

	mu       sync.Mutex
	arrived  map[string]bool
	bodies   map[string]string
	previous map[string][]string // ids of an object's changes that must arrive before, by id
	faulty   bool
	seen     tally
}

func newModel(t *testing.T, seed uint64) *model {
	return &model{
		T: t, r: rand.New(rand.NewPCG(seed, 7)), base: &sinktest.Store{}, faulty: true,
		kinds: map[string]kind{}, seqs: map[string]int64{}, arrived: map[string]bool{}, bodies: map[string]string{}, previous: map[string][]string{},
	}
}

// chance is true once in n; the receiver and the store call it from the pump's goroutine.
func (m *model) chance(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faulty && m.r.IntN(n) == 0
}

func (m *model) kind(id string) kind {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kinds[id]
}

func (m *model) pick(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.r.IntN(n)
}

// record appends changes of all kinds.
func (m *model) record(from, count int, before map[string][]string) {
	for n := from; n < from+count; n++ {
		item := sinktest.Item(n)
		k := wanted
		switch m.pick(12) {
		case 0:
			k = poisonous
		case 1:
			k, item.Err = damaged, errors.New("checksum differs")
		case 2:
			k, item.Change.Op = unwanted, event.Snapshot
		case 3:
			k, item.Change.Quiet = unwanted, true
		case 4:
			k, item.Change.Kind.Kind = unwanted, "Unmatched"
		}
		id, key := item.Event().ID, item.Event().PartitionKey
		m.mu.Lock()
		m.kinds[id], m.seqs[id] = k, item.Seq
		m.previous[id] = before[key]
		if k == wanted {
			before[key] = append(before[key][:len(before[key]):len(before[key])], id)
		}
		m.mu.Unlock()
		m.base.Append(item)
	}
}

// run is a sequence of processes, each of which ends in a stop or a crash; the last one may finish.
func (m *model) run() {
	before := map[string][]string{}
	for n := 0; n < modelChanges; {
		p := m.process()
		for range m.pick(8) {
			count := min(m.pick(40), modelChanges-n)
			m.record(n, count, before)
			n += count
			switch m.pick(6) {
			case 0:
				p.pump.Pause()
			case 1:
				if last, err := m.base.Last(m.Context()); err == nil {
					back := int64(m.pick(50))
					// Only backwards: a forward move skips, as requested.
					if seq, _, err := m.base.Cursor(m.Context(), "model"); err == nil && seq-back >= 0 && seq <= last {
						p.rewound()
						_ = p.pump.Rewind(m.Context(), seq-back) // may fail: the store does
					}
				}
			}
			<-time.After(time.Duration(m.pick(4000)) * time.Millisecond)
			p.pump.Resume()
		}
		if m.pick(3) > 0 {
			p.crash()
		}
		p.stop()
	}
	m.mu.Lock()
	m.faulty = false
	m.mu.Unlock()
	p := m.process()
	<-time.After(time.Hour)
	p.stop()
}

func (m *model) check() {
	dead := map[string]bool{}
	for _, d := range m.base.Dead() {
		dead[d.ID] = true
		if k := m.kinds[d.ID]; k != poisonous && k != damaged {
			m.Errorf("change %d is a dead letter: %s", d.Seq, d.Reason)
		}
		if d.Seq != m.seqs[d.ID] || d.Reason == "" {
			m.Errorf("dead letter %+v is change %d", d, m.seqs[d.ID])
		}
	}
	for id, k := range m.kinds {
		switch {
		case k == wanted && !m.arrived[id]:
			m.Errorf("change %d never arrived", m.seqs[id])
		case k != wanted && m.arrived[id]:
			m.Errorf("change %d arrived, though it is of kind %d", m.seqs[id], k)
		case (k == poisonous || k == damaged) && !dead[id]:
			m.Errorf("change %d of kind %d is not a dead letter", m.seqs[id], k)
		case k == poisonous:
			m.seen.poison++
		}
	}
	last, err := m.base.Last(m.Context())
	if seq, _, cerr := m.base.Cursor(m.Context(), "model"); err != nil || cerr != nil || seq != last {
		m.Errorf("the cursor is at %d, want %d (%v, %v)", seq, last, err, cerr)
	}
}

// process is one life of the daemon: its pump, its sink, its view of the store. After a crash it has no
// effects.
type process struct {
	*sinktest.Store
	m    *model
	pump *deliver.Pump
	end  context.CancelFunc
	done chan error

	mu      sync.Mutex
	crashed bool
	unsaved bool            // something was acknowledged since the last commit
	stored  map[string]bool // acknowledged behind a message that was not; nil after a rewind, which sends them again
}

func (p *process) rewound() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored = nil
}

func (m *model) process() *process {
	p := &process{Store: m.base, m: m, done: make(chan error, 1), stored: map[string]bool{}}
	var to sink.Sink = p
	if m.holds {
		to = &later{process: p}
	}
	var err error
	p.pump, err = deliver.New(deliver.Options{
		Name: "model", Sink: to, Store: p, From: deliver.Beginning, SendTimeout: 20 * time.Second,
		Where: filter(func(c *change.Change) (bool, error) { return c.Kind.Kind != "Unmatched", nil }),
	})
	if err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.end = cancel
	go func() { p.done <- p.pump.Run(ctx) }()
	return p
}

func (p *process) stop() {
	p.end()
	if err := <-p.done; err != nil {
		p.m.Errorf("Run: %v", err)
	}
}

func (p *process) crash() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.crashed {
		p.crashed = true
		p.m.mu.Lock()
		p.m.seen.crashes++
		if p.unsaved {
			p.m.seen.uncommitted++
		}
		p.m.mu.Unlock()
	}
}

var errCrashed = errors.New("the process is dead")

// alive is called before each effect.
func (p *process) alive(crash int) error {
	if p.m.chance(crash) {
		p.crash()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crashed {
		return errCrashed
	}
	return nil
}

func (p *process) Read(ctx context.Context, after int64) iter.Seq2[deliver.Item, error] {
	return func(yield func(deliver.Item, error) bool) {
		for item, err := range p.Store.Read(ctx, after) {
			if err == nil && p.m.chance(500) {
				item, err = deliver.Item{}, io.ErrUnexpectedEOF
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

func (p *process) SetCursor(ctx context.Context, name string, seq int64) error {
	if err := p.alive(40); err != nil {
		return err
	}
	if p.m.chance(10) {
		return errors.New("disk full")
	}
	p.m.passed(seq)
	err := p.Store.SetCursor(ctx, name, seq)
	p.mu.Lock()
	p.unsaved = false
	p.mu.Unlock()
	if p.m.chance(20) {
		return errors.New("written, but not known to be")
	}
	return err
}

func (p *process) Skip(ctx context.Context, d deliver.DeadLetter, cursor int64) error {
	if err := p.alive(20); err != nil {
		return err
	}
	if p.m.chance(5) {
		return errors.New("disk full")
	}
	p.m.passed(cursor)
	err := p.Store.Skip(ctx, d, cursor)
	if p.m.chance(20) {
		return errors.New("written, but not known to be")
	}
	return err
}

func (p *process) Close(context.Context) error { return nil }
func (p *process) String() string              { return "model" }

// Send accepts some of the messages, and reports that, or fewer.
func (p *process) Send(ctx context.Context, ms []sink.Message) (int, error) {
	if err := p.alive(60); err != nil {
		return 0, err
	}
	p.mu.Lock()
	for _, m := range ms {
		if p.stored[m.ID] {
			p.m.Errorf("change %d was acknowledged, and is sent again", p.m.seqs[m.ID])
		}
	}
	p.mu.Unlock()
	take, err := len(ms), error(nil)
	switch {
	case p.m.chance(6):
		take, err = p.m.pick(len(ms)+1), errDown
	case p.m.chance(10):
		take, err = p.m.pick(len(ms)+1), &sink.RetryAfterError{After: 3 * time.Second, Err: errDown}
	case p.m.chance(20):
		<-ctx.Done()
		return 0, ctx.Err()
	}
	for i, m := range ms[:take] {
		if p.m.kind(m.ID) == poisonous {
			return i, p.beyond(ms, i, &sink.PermanentError{Err: errors.New("refused")})
		}
		p.m.arrive(m)
		p.mu.Lock()
		p.unsaved = true
		p.mu.Unlock()
	}
	if err != nil && take > 0 {
		take -= p.m.pick(take) // arrived, but not acknowledged
	}
	if err == nil {
		err = p.alive(30) // killed after the receiver had everything
		if err != nil {
			return 0, err
		}
	} else if take == len(ms) {
		err = nil
	}
	return take, p.beyond(ms, take, err)
}

// beyond accepts some of the messages behind the first that is not acknowledged, and names them in the error. A Holder holds
// them: it names none.
func (p *process) beyond(ms []sink.Message, acked int, err error) error {
	if err == nil || p.m.holds {
		return err
	}
	stored := map[int]bool{}
	blocked := map[string]bool{}
	for i, m := range ms {
		if i < acked {
			continue
		}
		if i == acked || blocked[m.Key] || p.m.kind(m.ID) == poisonous || p.m.chance(3) {
			blocked[m.Key] = true
			continue
		}
		p.m.arrive(m)
		stored[i] = true
		p.mu.Lock()
		if p.stored != nil {
			p.stored[m.ID] = true
		}
		p.mu.Unlock()
		p.m.mu.Lock()
		p.m.seen.stored++
		p.m.mu.Unlock()
	}
	return sink.Partial(err, ms, acked, func(i int) bool { return stored[i] })
}

// passed checks that everything that a crash would not send again has arrived.
func (m *model) passed(cursor int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, k := range m.kinds {
		if k == wanted && m.seqs[id] <= cursor && !m.arrived[id] {
			m.Errorf("the cursor is set to %d, and change %d has not arrived", cursor, m.seqs[id])
		}
	}
}

func (m *model) arrive(msg sink.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.previous[msg.ID] {
		if !m.arrived[id] {
			m.Errorf("change %d overtook %d", m.seqs[msg.ID], m.seqs[id])
		}
	}
	if m.arrived[msg.ID] {
		m.seen.repeats++
	}
	m.arrived[msg.ID] = true
	if body, ok := m.bodies[msg.ID]; ok && body != string(msg.Body) {
		m.Errorf("change %s has another body the second time", msg.ID)
	}
	m.bodies[msg.ID] = string(msg.Body)
	if want := fmt.Sprintf(`"id":%q`, msg.ID); msg.Event.ID != msg.ID || strings.Count(string(msg.Body), want) != 1 {
		m.Errorf("message %s has event %s", msg.ID, msg.Event.ID)
	}
}
