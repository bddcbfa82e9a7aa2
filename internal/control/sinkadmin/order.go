package sinkadmin

import (
	"context"
	"errors"
	"fmt"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Verb is what an order does.
type Verb string

// The verbs, as the page's forms name them. Send and Drop are about dead letters.
const (
	Pause  Verb = "pause"
	Resume Verb = "resume"
	Replay Verb = "replay"
	Skip   Verb = "skip"
	Send   Verb = "send"
	Drop   Verb = "drop"
	Remove Verb = "remove"
)

// Order is an order about a sink, as a user gives it.
type Order struct {
	Do   Verb
	Sink string
	// From is where a Replay begins.
	From control.Place
	// ID is the change of Skip, or its beginning. Empty means whichever blocks the sink.
	ID string
	// Anonymous leaves the subject out of what Skip says, for users who may not see the change.
	Anonymous bool
	// Letters are the dead letters of Send and Drop. Those that are not Kept cannot be sent.
	Letters []Letter
}

// Result is what an order did.
type Result struct {
	// Text are sentences for people.
	Text []string
	// Hint is the command line that may follow, with an explanation; often empty.
	Hint string
}

// say adds a sentence.
func (r *Result) say(format string, args ...any) {
	r.Text = append(r.Text, fmt.Sprintf(format, args...))
}

// idle completes sentences about an order that was carried out without a daemon.
const idle = " once tattler run starts"

// Give gives the order. live says that a daemon carries it out. With an error, the result has what was done before.
func (o *Order) Give(ctx context.Context, to control.Orders, live bool) (r Result, err error) {
	after := ""
	if !live {
		after = idle
	}
	switch o.Do {
	case Pause:
		if err = to.Pause(ctx, o.Sink, true); err == nil {
			r.say("%s is paused: new changes wait in the journal", o.Sink)
		}
	case Resume:
		if err = to.Pause(ctx, o.Sink, false); err == nil {
			r.say("%s is resumed%s", o.Sink, after)
		}
	case Remove:
		if err = to.Remove(ctx, o.Sink); err == nil {
			r.say("%s is removed", o.Sink)
		}
	case Replay:
		err = o.replay(ctx, to, after, &r)
	case Skip:
		err = o.skip(ctx, to, live, &r)
	case Send:
		err = o.send(ctx, to, &r)
	case Drop:
		err = o.drop(ctx, to, &r)
	default:
		err = control.Refuse("there is no order %q", o.Do)
	}
	return r, err
}

func (o *Order) replay(ctx context.Context, to control.Orders, after string, r *Result) error {
	done, err := to.Replay(ctx, o.Sink, o.From)
	if err != nil {
		return err
	}
	if done.Again == 0 {
		r.say("nothing to deliver again: %s has received nothing since then; up to %s to deliver", o.Sink, count(done.Behind, "change"))
	} else {
		r.say("%s receives up to %s again, and up to %d in all%s; quiet changes, those that its filter rejects and, without snapshots: true, snapshots are not sent",
			o.Sink, count(done.Again, "change"), done.Behind, after)
	}
	if done.Paused {
		r.Hint = fmt.Sprintf("it is paused: tattler sinks resume %s continues it", o.Sink)
	}
	return nil
}

func (o *Order) skip(ctx context.Context, to control.Orders, live bool, r *Result) error {
	done, err := to.Skip(ctx, o.Sink, o.ID)
	if err != nil {
		return err
	}
	change := "change " + done.ID
	if !o.Anonymous {
		change += " (" + done.Subject + ")"
	}
	if live {
		r.say("%s continues without %s, which is now a dead letter; it failed with: %s", o.Sink, change, done.Error)
	} else {
		r.say("%s is now a dead letter; %s continues with the next one%s", change, o.Sink, idle)
	}
	r.Hint = fmt.Sprintf("tattler sinks dead %s %s --replay sends it again", o.Sink, done.ID)
	return nil
}

// send sends dead letters again. It cannot send those whose change is no longer in the journal.
func (o *Order) send(ctx context.Context, to control.Orders, r *Result) error {
	var ids []string
	for _, l := range o.Letters {
		if l.Kept {
			ids = append(ids, l.ID)
		}
	}
	if lost := len(o.Letters) - len(ids); lost > 0 {
		r.say("%s cannot be sent: the journal no longer has the change", count(int64(lost), "dead letter"))
		r.Hint = fmt.Sprintf("tattler sinks dead %s --drop ID removes it for good", o.Sink)
	}
	if len(ids) == 0 {
		r.say("nothing to send")
		return nil
	}
	done, err := to.ReplayDead(ctx, o.Sink, ids)
	if err == nil || done.Taken > 0 {
		r.say("%d of %s accepted", done.Taken, count(int64(len(ids)), "dead letter"))
	}
	switch {
	case err != nil:
		return err
	case done.Refused > 0:
		return &RefusedError{Sink: o.Sink, Refused: done.Refused}
	}
	return nil
}

func (o *Order) drop(ctx context.Context, to control.Orders, r *Result) error {
	var ids []string
	for _, l := range o.Letters {
		ids = append(ids, l.ID)
	}
	if len(ids) == 0 {
		r.say("%s has no dead letters", o.Sink)
		return nil
	}
	n, err := to.DropDead(ctx, o.Sink, ids)
	if err == nil {
		r.say("%s removed for good", count(int64(n), "dead letter"))
	}
	return err
}

// RefusedError reports that the receiver refused dead letters again. They stay, each with its new reason.
type RefusedError struct {
	Sink    string
	Refused int
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s refused again: tattler sinks dead %s shows why", count(int64(e.Refused), "dead letter"), e.Sink)
}

// Through passes do what carries out orders on a journal: the daemon that writes it or, if none runs, the journal itself;
// live is false then. If there is no journal, the error is fs.ErrNotExist.
func Through(ctx context.Context, path string, do func(to control.Orders, live bool) error) error {
	err := do(&control.Client{Journal: path}, true)
	var none *control.NoDaemonError
	if !errors.As(err, &none) {
		return err
	}
	d, err := Open(ctx, path)
	var locked *journal.LockedError
	switch {
	case errors.As(err, &locked):
		return fmt.Errorf("%w, which does not answer at %s: it is starting or stopping, or is an older version", err, control.SocketPath(path))
	case err != nil:
		return err
	}
	return errors.Join(do(d, false), d.Close())
}

// count writes a number of things.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
