package sinks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/report"
	"github.com/tattler-dev/tattler/internal/cli/when"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
)

// idle completes messages about an order that was executed without a daemon.
const idle = " once tattler run starts"

// Pause pauses or resumes sinks.
func Pause(ctx context.Context, o *Options, paused bool) error {
	return o.each(ctx, func(to control.Orders, live bool, name string) error {
		if err := to.Pause(ctx, name, paused); err != nil {
			return err
		}
		switch {
		case paused:
			o.say("%s is paused: new changes wait in the journal", name)
		case live:
			o.say("%s is resumed", name)
		default:
			o.say("%s is resumed%s", name, idle)
		}
		return nil
	})
}

// Remove forgets sinks.
func Remove(ctx context.Context, o *Options) error {
	return o.each(ctx, func(to control.Orders, _ bool, name string) error {
		if err := to.Remove(ctx, name); err != nil {
			return err
		}
		o.say("%s is forgotten", name)
		return nil
	})
}

// each gives an order for every name. The first error ends it; earlier orders stay in effect.
func (o *Options) each(ctx context.Context, do func(to control.Orders, live bool, name string) error) error {
	left := slices.Clone(o.Names)
	return o.order(ctx, func(to control.Orders, live bool) error {
		for len(left) > 0 {
			if err := do(to, live, left[0]); err != nil {
				return err
			}
			left = left[1:]
		}
		return nil
	})
}

// Replay delivers changes again.
func Replay(ctx context.Context, o *Options) error {
	name, from := o.Names[0], control.Place{}
	switch {
	case o.All == (o.Since != ""):
		return capture.Usage("no start is given: use --since TIME or --all")
	case o.Since != "":
		at, err := when.Parse(o.Since, o.now())
		if err != nil {
			return capture.Usage("--since: %v", err)
		}
		from.Since = at
	}
	return o.order(ctx, func(to control.Orders, live bool) error {
		done, err := to.Replay(ctx, name, from)
		if err != nil {
			return err
		}
		after := ""
		if !live {
			after = idle
		}
		switch {
		case done.Again == 0:
			o.say("nothing to deliver again: %s has received nothing since then; up to %s to deliver", name, report.Count(done.Behind, "change"))
		default:
			o.say("%s receives up to %s again, and up to %d in all%s; quiet changes, and those that its filter rejects, are not sent",
				name, report.Count(done.Again, "change"), done.Behind, after)
		}
		if done.Paused {
			o.say("it is paused: tattler sinks resume %s continues it", name)
		}
		return nil
	})
}

// Skip sets aside the change that blocks a sink.
func Skip(ctx context.Context, o *Options) error {
	sink, id := o.Names[0], ""
	if len(o.Names) > 1 {
		id = o.Names[1]
	}
	return o.order(ctx, func(to control.Orders, live bool) error {
		done, err := to.Skip(ctx, sink, id)
		if err != nil {
			return err
		}
		if live {
			o.say("%s continues without change %s (%s), which is now a dead letter; it failed with: %s", sink, done.ID, done.Subject, done.Error)
		} else {
			o.say("change %s (%s) is now a dead letter; %s continues with the next one%s", done.ID, done.Subject, sink, idle)
		}
		o.say("tattler sinks dead %s %s --replay sends it again", sink, done.ID)
		return nil
	})
}

// Dead lists, replays or drops dead letters.
func Dead(ctx context.Context, o *Options) error {
	sink, ids := o.Names[0], o.Names[1:]
	switch {
	case o.Replay && o.Drop:
		return capture.Usage("--replay and --drop exclude each other")
	case o.All && len(ids) > 0:
		return capture.Usage("name some ids, or use --all")
	case (o.Replay || o.Drop) && !o.All && len(ids) == 0:
		return capture.Usage("say which dead letters: some ids, or --all")
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
		return o.dropDead(ctx, sink, letters)
	case o.Output == "json":
		return o.json(letters)
	case len(letters) == 0:
		o.say("%s has no dead letters", sink)
		return nil
	}
	return report.Letters(o.IO.Out, letters, o.now(), o.IO.Width())
}

// letters reads the dead letters of a sink from the journal: all of them, or those whose ids have one of the
// prefixes.
func (o *Options) letters(ctx context.Context, sink string, ids []string) ([]sinkadmin.Letter, error) {
	path, err := o.Past.File(ctx)
	if err != nil {
		return nil, err
	}
	r, err := past.OpenReader(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	kept, err := r.Sinks(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range kept {
		names = append(names, s.Name)
	}
	if !slices.Contains(names, sink) {
		return nil, sinkadmin.Unknown(sink, names)
	}
	all, err := sinkadmin.Letters(ctx, r, sink)
	if err != nil || len(ids) == 0 {
		return all, err
	}
	var some []sinkadmin.Letter
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
		return found, capture.Usage("%q is a prefix of the ids of %d dead letters", id, n)
	}
	return found, nil
}

// replayDead sends dead letters again. It cannot send those whose change is no longer in the journal.
func (o *Options) replayDead(ctx context.Context, sink string, letters []sinkadmin.Letter) error {
	var ids []string
	for _, l := range letters {
		if l.Kept {
			ids = append(ids, l.ID)
		}
	}
	if lost := len(letters) - len(ids); lost > 0 {
		o.say("%s cannot be sent: the journal no longer has the change (--drop gives it up)", report.Count(int64(lost), "dead letter"))
	}
	if len(ids) == 0 {
		o.say("nothing to send")
		return nil
	}
	// Only a daemon can send; without one, this fails.
	path, err := o.Past.File(ctx)
	if err != nil {
		return err
	}
	done, err := (&control.Client{Journal: path}).ReplayDead(ctx, sink, ids)
	if err == nil || done.Taken > 0 {
		o.say("%d of %s accepted", done.Taken, report.Count(int64(len(ids)), "dead letter"))
	}
	switch {
	case err != nil:
		return err
	case done.Refused > 0:
		return fmt.Errorf("%s refused again: tattler sinks dead %s shows why", report.Count(int64(done.Refused), "dead letter"), sink)
	}
	return nil
}

func (o *Options) dropDead(ctx context.Context, sink string, letters []sinkadmin.Letter) error {
	var ids []string
	for _, l := range letters {
		ids = append(ids, l.ID)
	}
	if len(ids) == 0 {
		o.say("%s has no dead letters", sink)
		return nil
	}
	return o.order(ctx, func(to control.Orders, _ bool) error {
		n, err := to.DropDead(ctx, sink, ids)
		if err != nil {
			return err
		}
		o.say("%s removed for good", report.Count(int64(n), "dead letter"))
		return nil
	})
}
