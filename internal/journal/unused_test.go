package journal

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// managed returns an update of a pod by a manager.
func managed(n int, manager, namespace string) Row {
	r := pod(event.Updated, n)
	r.Manager, r.Namespace, r.Name, r.UID = manager, namespace, fmt.Sprint("web-", n), fmt.Sprint("uid-", n)
	return r
}

func namesIn(t *testing.T, j *Journal) (n int64) {
	t.Helper()
	must(t, j.do(t.Context(), "read", func() (err error) {
		n, err = j.db.integer("SELECT count(*) FROM strings")
		return err
	}))
	return n
}

// flood appends changes of new managers. Every tenth is the deletion of an object in a new namespace.
func flood(t *testing.T, j *Journal, all int) {
	t.Helper()
	var rows []Row
	for n := range all {
		r := pod(event.Updated, n+1)
		if n%10 == 0 {
			r = managed(n+1, "", fmt.Sprint("ns-", n))
			r.Op, r.After = event.Deleted, nil
		}
		r.Manager = fmt.Sprint("manager-", n)
		rows = append(rows, r)
	}
	add(t, j, rows...)
	if n := namesIn(t, j); n < int64(all+all/10) {
		t.Fatalf("%d names", n)
	}
}

// TestUnusedNames: names that only removed changes used go, and others stay. No number is assigned again.
func TestUnusedNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	flood(t, j, 3_000)
	last := add(t, j, managed(20_001, "kept", "live")).Last
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	for _, err := range r.Rows(t.Context(), Query{}) { // so that it caches names
		must(t, err)
	}
	newest, err := j.db.integer("SELECT max(id) FROM strings")
	must(t, err)
	now := epoch.Add(20_000 * time.Second)
	done, err := j.Retain(t.Context(), now, Retention{Age: time.Second}, last)
	must(t, err)
	// The newest block, of up to 256 changes, stays, with the names of its removed changes.
	if n := namesIn(t, j); done.Removed != 3_000 || done.Names < 3_000 || n > 2*blockSize {
		t.Errorf("%+v, and there are %d names", done, n)
	}
	for i := range blockSize { // removed names return, and new ones come
		add(t, j, managed(30_000+i, fmt.Sprint("manager-", i), fmt.Sprint("ns-", i)))
	}
	id, err := j.names.id("manager-0")
	if must(t, err); id <= newest {
		t.Errorf("manager-0 has number %d; up to %d were assigned before", id, newest)
	}
	got := map[string]bool{}
	for e, err := range r.Rows(t.Context(), Query{}) {
		must(t, err)
		got[e.Namespace+" "+e.Manager] = true
	}
	for _, want := range []string{"live kept", "ns-0 manager-0", "ns-255 manager-255"} {
		if !got[want] {
			t.Errorf("no change of %s", want)
		}
	}
	verify(t, path)
	// The object is live: its namespace stays after its change and the block are gone.
	last = add(t, j, many(blockSize+1, event.Created)...).Last
	for _, at := range []time.Duration{0, unusedEvery} {
		_, err = j.Retain(t.Context(), now.Add(48*time.Hour+at), Retention{Age: time.Second}, last)
		must(t, err)
	}
	var live []string
	for o, err := range j.Objects(t.Context(), pods) {
		must(t, err)
		if o.Name == "web-20001" {
			live = append(live, o.Namespace)
		}
	}
	if strings.Join(live, ",") != "live" {
		t.Errorf("the live object is in %q", live)
	}
	verify(t, path)
}

// TestUnusedNamesWhileAppending: a name that seemed unused and is appended between the steps is kept.
func TestUnusedNamesWhileAppending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	flood(t, j, 3000)
	last, err := j.Last(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var appended atomic.Int64 // changes, each of which takes a name into use again
	go func() {
		var err error
		for n := 0; ctx.Err() == nil && err == nil; n++ {
			appended.Add(1)
			row := managed(30_000+n, fmt.Sprint("manager-", n%3000), fmt.Sprint("ns-", (n%300)*10))
			_, err = j.Append(context.WithoutCancel(ctx), []Batch{{Stream: pods, Head: Head{Version: "9", At: epoch}, Rows: []Row{row}}})
		}
		ended <- err
	}()
	now := epoch.Add(20_000 * time.Second)
	for i := range 3 {
		done, err := j.Retain(t.Context(), now.Add(time.Duration(i)*unusedEvery), Retention{Age: time.Duration(i)*unusedEvery + time.Second}, last)
		must(t, err)
		if used := appended.Load(); i == 0 && int64(done.Names)+used < 2000 {
			t.Errorf("%+v, after %d changes", done, used)
		}
	}
	cancel()
	must(t, <-ended)
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	for e, err := range r.Rows(t.Context(), Query{}) {
		must(t, err)
		var n int
		if _, err := fmt.Sscanf(e.Name, "web-%d", &n); err != nil || n >= 30_000 && e.Manager != fmt.Sprint("manager-", (n-30_000)%3000) {
			t.Fatalf("%s was written by %s", e.Name, e.Manager)
		}
	}
	verify(t, path)
}
