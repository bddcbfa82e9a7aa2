package sinks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
)

// place is the destination of a sink. It keeps the order of messages that are sent one after another.
type place struct {
	// sink returns a new sink that sends there. It is called several times.
	sink func() (sink.Sink, error)
	// receive, if set, reports earlier and new messages until ctx ends. Without it the place reports messages
	// by itself.
	receive func(ctx context.Context, arrived func(n int)) error
	// close ends the place. It is called after receive has returned.
	close func() error
}

// opener opens a place with a folder. The place calls arrived when messages arrive, or has receive.
type opener func(ctx context.Context, dir string, arrived func(n int)) (*place, error)

const (
	// rate is the rate of changes for timing arrivals, per second.
	rate = 100
	// warm is the number of changes before anything is timed; they open the connections.
	warm = 100
	// agent is the name by which sinks identify themselves.
	agent = "tattler/bench"
)

// timed is the number of arrivals to time if events are delivered at once: ten seconds' worth for 20,000.
func timed(events int) int { return max(events/20, min(events, 300)) }

// measure measures a kind of sink.
func (k Kind) measure(ctx context.Context, in harness.Input) (s harness.Sample, err error) {
	if k.Missing() {
		return harness.Sample{}, nil
	}
	dir, remove, err := temporary(in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	a := &arrivals{}
	p, err := k.open(ctx, dir, a.add)
	if err != nil {
		return nil, fmt.Errorf("open receiver: %w", err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	s = harness.Sample{}
	late, err := p.latency(ctx, a, timed(in.Events))
	if err != nil {
		return nil, fmt.Errorf("time arrivals: %w", err)
	}
	s["median ms"], s["p99 ms"] = percentile(late, 50), percentile(late, 99)
	if s["batches/s"], err = p.throughput(ctx, 1_000_000, in.Events, false); err != nil {
		return nil, fmt.Errorf("deliver in batches: %w", err)
	}
	if s["singles/s"], err = p.throughput(ctx, 2_000_000, in.Events, true); err != nil {
		return nil, fmt.Errorf("deliver one by one: %w", err)
	}
	return s, nil
}

// arrivals are the times at which messages arrived.
type arrivals struct {
	mu sync.Mutex
	at []time.Time
}

func (a *arrivals) add(n int) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for range n {
		a.at = append(a.at, now)
	}
}

func (a *arrivals) times() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

// latency appends changes at a rate and returns the milliseconds until each arrived.
func (p *place) latency(ctx context.Context, a *arrivals, count int) (late []float64, err error) {
	st := &Store{}
	r, err := p.start(ctx, st)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if p.receive != nil {
		receiving, end := context.WithCancel(ctx)
		received := make(chan error, 1)
		go func() { received <- p.receive(receiving, a.add) }()
		defer func() {
			end()
			if herr := <-received; !errors.Is(herr, context.Canceled) {
				err = errors.Join(err, herr)
			}
		}()
	}
	st.Add(changes(0, warm)...)
	if err := r.until(ctx, func(int64) bool { return len(a.times()) >= warm }); err != nil {
		return nil, err
	}
	came := make([]time.Time, count)
	start := time.Now()
	for i := range came {
		item := change(warm + i)
		select {
		case <-time.After(time.Until(start.Add(time.Duration(i) * time.Second / rate))):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		came[i] = time.Now()
		st.Add(item)
	}
	if err := r.until(ctx, func(cursor int64) bool { return cursor == int64(warm+count) && len(a.times()) >= warm+count }); err != nil {
		return nil, err
	}
	at := a.times()
	if len(at) != warm+count {
		return nil, fmt.Errorf("%d changes arrived, not %d", len(at), warm+count)
	}
	for i := range came {
		late = append(late, float64(at[warm+i].Sub(came[i]).Microseconds())/1000)
	}
	return late, nil
}

// throughput delivers pending changes and returns the number of acknowledged changes per second.
func (p *place) throughput(ctx context.Context, from, count int, single bool) (perSecond float64, err error) {
	st := &Store{single: single}
	all := changes(from, warm+count)
	r, err := p.start(ctx, st)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	st.Add(all[:warm]...)
	if err := r.until(ctx, func(cursor int64) bool { return cursor == warm }); err != nil {
		return 0, err
	}
	start := time.Now()
	st.Add(all[warm:]...)
	if err := r.until(ctx, func(cursor int64) bool { return cursor == int64(len(all)) }); err != nil {
		return 0, err
	}
	return float64(count) / time.Since(start).Seconds(), nil
}

// running is a running pump.
type running struct {
	pump  *deliver.Pump
	store *Store
	end   context.CancelFunc
	ended chan error
}

func (p *place) start(ctx context.Context, st *Store) (*running, error) {
	to, err := p.sink()
	if err != nil {
		return nil, err
	}
	pump, err := deliver.New(deliver.Options{Name: "bench", Sink: to, Store: st, From: deliver.Beginning})
	if err != nil {
		return nil, errors.Join(err, to.Close(ctx))
	}
	ctx, end := context.WithCancel(ctx)
	r := &running{pump: pump, store: st, end: end, ended: make(chan error, 1)}
	go func() { r.ended <- pump.Run(ctx) }()
	return r, nil
}

// until waits for a condition. A failed delivery is an error, because the retry's delay would be measured.
func (r *running) until(ctx context.Context, done func(cursor int64) bool) error {
	var failed error
	err := harness.Wait(ctx, func() bool {
		cursor, refused := r.store.state()
		if s := r.pump.Status(); s.Failures > 0 {
			refused = errors.New(s.Error)
		}
		failed = refused
		return failed != nil || done(cursor)
	})
	return errors.Join(err, failed)
}

func (r *running) stop() error {
	r.end()
	return <-r.ended
}
