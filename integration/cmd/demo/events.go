package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tattler-dev/tattler/event"
)

// ids are unique event ids.
type ids map[string]bool

// add records an event; a duplicate is an error.
func (s ids) add(id, place string) error {
	if s[id] {
		return fmt.Errorf("event %s is in %s twice", id, place)
	}
	s[id] = true
	return nil
}

// idsIn returns the ids in a file of events.
func idsIn(path string) (ids, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	defer file.Close()
	seen := ids{}
	for d := json.NewDecoder(file); ; {
		var e struct{ ID string }
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			return seen, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if err := seen.add(e.ID, eventsFile); err != nil {
			return nil, err
		}
	}
}

// showBus narrates the events that a subscriber of the bus receives after the daemon has delivered everything:
// the same as in the file.
func (d *demo) showBus(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	d.narrate("events received by a subscriber of " + busStream)
	events, err := d.bus.Read(ctx)
	if err != nil {
		return err
	}
	want, err := idsIn(filepath.Join(d.dir, eventsFile))
	if err != nil {
		return err
	}
	for i := range events {
		fmt.Fprintln(d.Out, line(&events[i]))
	}
	if err := same(events, want); err != nil {
		return err
	}
	d.narrate(fmt.Sprintf("%s has %d events, each of them once: those of %s", busStream, len(events), eventsFile))
	return nil
}

// same compares the events of the bus with the ids of the file.
func same(events []event.Event, want ids) error {
	seen := ids{}
	for _, e := range events {
		if err := seen.add(e.ID, busStream); err != nil {
			return err
		}
		if !want[e.ID] {
			return fmt.Errorf("event %s is in %s, but not in %s", e.ID, busStream, eventsFile)
		}
	}
	if len(seen) < len(want) {
		return fmt.Errorf("of %d events only %d are in %s", len(want), len(seen), busStream)
	}
	return nil
}

// line formats an event: the operation, the object, and the id.
func line(e *event.Event) string {
	r := e.Data.Resource
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return fmt.Sprintf("%-8s  %-24s  %-44s  %s", e.Data.Op, r.Kind, name, e.ID)
}
