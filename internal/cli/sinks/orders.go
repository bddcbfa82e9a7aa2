package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/report"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/when"
)

// command names this verb in the daemon's log.
const command = "tattler sinks"

// give gives orders to the daemon, or carries them out here if none runs. The first error ends it; earlier orders stay in
// effect.
func (o *Options) give(ctx context.Context, orders ...sinkadmin.Order) error {
	path, err := o.Past.File(ctx)
	if err != nil {
		return err
	}
	ctx = control.By(ctx, command)
	err = sinkadmin.Through(ctx, path, func(to control.Orders, live bool) error {
		for len(orders) > 0 {
			if err := o.carryOut(ctx, &orders[0], to, live); err != nil {
				return err
			}
			orders = orders[1:]
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		if missing := past.Exists(path); missing != nil {
			return missing
		}
	}
	return err
}

// carryOut gives an order and prints what it did.
func (o *Options) carryOut(ctx context.Context, order *sinkadmin.Order, to control.Orders, live bool) error {
	done, err := order.Give(ctx, to, live)
	for _, text := range append(done.Text, done.Hint) {
		if text != "" {
			o.say("%s", text)
		}
	}
	return err
}

// each gives an order for every named sink.
func (o *Options) each(ctx context.Context, do sinkadmin.Verb) error {
	var orders []sinkadmin.Order
	for _, name := range o.Names {
		orders = append(orders, sinkadmin.Order{Do: do, Sink: name})
	}
	return o.give(ctx, orders...)
}

// Pause pauses or resumes sinks.
func Pause(ctx context.Context, o *Options, paused bool) error {
	if paused {
		return o.each(ctx, sinkadmin.Pause)
	}
	return o.each(ctx, sinkadmin.Resume)
}

// Remove forgets sinks.
func Remove(ctx context.Context, o *Options) error { return o.each(ctx, sinkadmin.Remove) }

// Replay delivers changes again.
func Replay(ctx context.Context, o *Options) error {
	order := sinkadmin.Order{Do: sinkadmin.Replay, Sink: o.Names[0]}
	switch {
	case o.All && o.Since != "":
		return usage.Errorf("--since and --all exclude each other")
	case !o.All && o.Since == "":
		return usage.Errorf("no start is given: use --since TIME or --all")
	case o.Since != "":
		at, err := when.Parse(o.Since, o.now())
		if err != nil {
			return usage.Errorf("--since: %v", err)
		}
		order.From.Since = at
	}
	return o.give(ctx, order)
}

// Skip sets aside the change that blocks a sink.
func Skip(ctx context.Context, o *Options) error {
	order := sinkadmin.Order{Do: sinkadmin.Skip, Sink: o.Names[0]}
	if len(o.Names) > 1 {
		order.ID = o.Names[1]
	}
	return o.give(ctx, order)
}

// Dead lists, replays or drops dead letters.
func Dead(ctx context.Context, o *Options) error {
	sink, ids := o.Names[0], o.Names[1:]
	switch {
	case o.Replay && o.Drop:
		return usage.Errorf("--replay and --drop exclude each other")
	case o.All && len(ids) > 0:
		return usage.Errorf("name some ids, or use --all")
	case (o.Replay || o.Drop) && !o.All && len(ids) == 0:
		return usage.Errorf("say which dead letters: some ids, or --all")
	}
	if err := o.checkOutput(); err != nil {
		return err
	}
	letters, err := o.letters(ctx, sink, ids)
	if err != nil {
		return err
	}
	switch {
	case o.Replay:
		return o.replayDead(ctx, sink, letters)
	case o.Drop:
		return o.give(ctx, sinkadmin.Order{Do: sinkadmin.Drop, Sink: sink, Letters: letters})
	case o.Output == "json":
		return o.json(letters)
	case len(letters) == 0:
		o.say("%s has no dead letters", sink)
		return nil
	}
	return report.Letters(o.IO.Out, letters, o.now(), o.IO.Width())
}

// replayDead sends dead letters again. Only a daemon can; without one, this fails.
func (o *Options) replayDead(ctx context.Context, sink string, letters []sinkadmin.Letter) error {
	path, err := o.Past.File(ctx)
	if err != nil {
		return err
	}
	order := &sinkadmin.Order{Do: sinkadmin.Send, Sink: sink, Letters: letters}
	return o.carryOut(control.By(ctx, command), order, &control.Client{Journal: path}, true)
}

// letters reads the dead letters of a sink from the journal: all of them, or those whose ids have one of the
// prefixes.
func (o *Options) letters(ctx context.Context, sink string, ids []string) (some []sinkadmin.Letter, err error) {
	var all []sinkadmin.Letter
	err = o.read(ctx, func(r *journal.Reader) error {
		if err := sinkadmin.Known(ctx, r, sink); err != nil {
			return err
		}
		all, err = sinkadmin.Letters(ctx, r, sink)
		return err
	})
	if err != nil || len(ids) == 0 {
		return all, err
	}
	for _, id := range ids {
		l, err := find(all, sink, id)
		if err != nil {
			return nil, err
		}
		some = append(some, l)
	}
	return some, nil
}

// find returns the dead letter with an id, or the only one whose id has the prefix.
func find(all []sinkadmin.Letter, sink, id string) (found sinkadmin.Letter, err error) {
	n := 0
	for _, l := range all {
		if strings.HasPrefix(l.ID, id) {
			found = l
			n++
		}
	}
	switch {
	case n == 0 || id == "":
		return found, fmt.Errorf("sink %s has no dead letter %q", sink, id)
	case n > 1:
		return found, usage.Errorf("%q is a prefix of the ids of %d dead letters", id, n)
	}
	return found, nil
}
