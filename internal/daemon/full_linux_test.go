package daemon

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/trace"
	"github.com/tattler-dev/tattler/internal/web"
)

// TestFullDisk: a daemon that has filled its disk recovers by itself, without a gap, and reports no change as journaled that
// it could not write.
func TestFullDisk(t *testing.T) { onSmallDisk(t, 36, fillsDisk) }

// TestFullDiskAtStart: a daemon that finds its disk full waits for space, or makes it.
func TestFullDiskAtStart(t *testing.T) { onSmallDisk(t, 48, startsFull) }

// smallReserve is the reserve of a daemon on a small disk. A journal that should heal itself takes more than four times as much.
const smallReserve = 4 << 20

// onSmallDisk runs a test in a bubble, with a directory on a disk of some MiB. The disk is in a mount namespace of a child process,
// which runs the test again.
func onSmallDisk(t *testing.T, size int, f func(t *testing.T, dir string)) {
	t.Helper()
	if dir := os.Getenv("DAEMON_DISK"); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", size)); err != nil {
			t.Fatal("mount a small disk:", err)
		}
		synctest.Test(t, func(t *testing.T) { f(t, dir) })
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "DAEMON_DISK="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || strings.Contains(string(out), "mount a small disk") {
		if os.Getenv("CI") == "" {
			t.Skipf("no file system of our own: %v %s", err, out)
		}
	}
	if err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// occupy takes all of the disk but some bytes, and returns the file.
func occupy(t *testing.T, dir string, but int64) string {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "other")
	f, err := os.Create(path)
	if err == nil {
		_, err = io.CopyN(f, zeros{}, max(0, int64(st.Bavail)*int64(st.Bsize)-but)) //nolint:unconvert // some systems have another type
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// startsFull starts a daemon on a full disk: with nothing, with a journal for which something else leaves no space, and with
// one that has filled the disk itself.
func startsFull(t *testing.T, dir string) {
	r := newRig(t)
	r.put("a", "1")
	o := Options{Retention: journal.Retention{Size: 1 << 30}, reserve: smallReserve}
	other := occupy(t, dir, 0)
	d := r.daemon(dir, o)
	d.pass(9 * time.Minute)
	if s := d.status(); s.Starting != "waiting for space on the disk" || strings.Count(d.log.String(), "level=ERROR") != 1 {
		t.Errorf("%+v\n%s", s, d.log.String())
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	d.pass(time.Minute)
	r.put("a", "2")
	d.pass(time.Second)
	if s := d.status(); !s.Settled || s.Journal.Last != 2 {
		t.Errorf("with space: %+v\n%s", s, d.log.String())
	}
	d.stop()

	if err := os.Remove(filepath.Join(dir, "journal.db-reserve")); err != nil {
		t.Fatal(err)
	}
	other = occupy(t, dir, 0)
	r.put("a", "3")
	d = r.daemon(dir, o)
	d.pass(9 * time.Minute)
	if s := d.status(); s.Starting == "" && s.Journal.Error == "" || !strings.Contains(d.log.String(), "the disk is full") {
		t.Errorf("a small journal: %+v\n%s", s, d.log.String())
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	d.pass(time.Minute)
	if s := d.status(); !s.Settled || s.Streams[0].Gaps > 0 || s.Journal.Last < 4 { // with an absence
		t.Errorf("a small journal, with space: %+v\n%s", s, d.log.String())
	}

	written := int64(0)
	for failures := d.status().Journal.Failures; d.status().Journal.Failures == failures; written++ {
		if written > 2000 {
			t.Fatal("the disk is never full")
		}
		noise := make([]byte, 150_000)
		_, _ = rand.Read(noise)
		r.put("b", base64.StdEncoding.EncodeToString(noise))
	}
	d.stop()
	occupy(t, dir, 0)
	r.put("c", "1")
	d = r.daemon(dir, o)
	d.pass(5 * time.Minute)
	if s := d.status(); !s.Settled || s.Journal.Error != "" || s.Journal.Removed == 0 || s.Streams[0].Gaps > 0 {
		t.Errorf("a journal that fills the disk: %+v\n%s", s, d.log.String())
	}
	d.stop()
}

func fillsDisk(t *testing.T, dir string) {
	r, written, absences := newRig(t), int64(0), int64(0)
	put := func() {
		noise := make([]byte, 150_000)
		_, _ = rand.Read(noise)
		r.put(fmt.Sprint("web-", written%4), base64.StdEncoding.EncodeToString(noise))
		written++
	}
	put()
	o := trace.DefaultOptions()
	o.Endpoint = "http://127.0.0.1:1" // a refused connection leaves nothing open in the bubble
	traces, err := trace.New("tattler/test", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := r.daemon(dir, Options{Retention: journal.Retention{Size: 1 << 30}, reserve: smallReserve, Traces: traces})
	page := newPage(t, dir)
	for range 3 {
		absences++
		failures := d.status().Journal.Failures
		for d.status().Journal.Failures == failures {
			if put(); written > 2000 {
				t.Fatal("the disk is never full")
			}
		}
		if absences == 1 {
			page.shows(t, "web-") // although nothing can be written
		}
		d.pass(15 * time.Second)
		for range 5 {
			put()
		}
		d.pass(15 * time.Second)
		s, kept := d.status(), int64(len(recordedIn(t, filepath.Join(dir, "journal.db"), journal.Query{})))
		if s.Journal.Error != "" || s.Journal.Last != written+absences || s.Journal.Removed == 0 || kept+s.Journal.Removed != s.Journal.Last || s.Streams[0].Gaps > 0 {
			t.Fatalf("%d changes, %d are kept: %+v, %+v\n%s", written, kept, s.Journal, s.Streams, d.log.String())
		}
	}
	if !strings.Contains(d.log.String(), "the disk is full: removed the oldest changes") || strings.Contains(d.log.String(), "no room for the journal's reserve") {
		t.Errorf("logged:\n%s", d.log.String())
	}
	last := d.status().Journal.Last
	d.stop()
	if s := traces.Status(); s.Exported != 0 || s.Dropped != last-1 { // the first is a snapshot
		t.Errorf("the journal has %d changes, and the traces are %+v", last, s)
	}
}

// page is the web page of a daemon's journal.
type page struct{ *web.Page }

func newPage(t *testing.T, dir string) page {
	t.Helper()
	r, err := journal.OpenReader(t.Context(), filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := web.New(web.Options{Source: r})
	if err != nil {
		t.Fatal(err)
	}
	return page{p}
}

// shows checks that the timeline, an object and its blame are served.
func (p page) shows(t *testing.T, text string) {
	t.Helper()
	for _, url := range []string{"/", "/object?type=configmaps&namespace=shop&name=web-1", "/object?type=configmaps&namespace=shop&name=web-1&view=blame"} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), text) {
			t.Errorf("on a full disk, %s: %d\n%.500s", url, w.Code, w.Body.String())
		}
	}
}
