package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// child runs the role that JOURNAL_CHILD names instead of the tests.
func child(what string) bool {
	path, seed := os.Getenv("JOURNAL_PATH"), os.Getenv("JOURNAL_SEED")
	switch what {
	case "":
		return false
	case "append":
		n, _ := strconv.ParseUint(seed, 10, 64)
		from, _ := strconv.Atoi(os.Getenv("JOURNAL_FROM"))
		appendForEver(path, n, from)
	case "full":
		ends(fillDisk(path))
	case "backup":
		_, err := Backup(context.Background(), path, os.Getenv("JOURNAL_TO"), nil)
		fmt.Println("failed:", err)
	case "restore":
		_, err := Restore(context.Background(), os.Getenv("JOURNAL_FROM"), path, time.Now())
		fmt.Println("failed:", err)
	case "heals":
		ends(heals(path))
	case "at-once":
		ends(fullAtOnce(path))
	case "unused-pages":
		ends(unusedPages(path))
	case "no-reserve":
		ends(noReserve(path))
	case "held-log":
		ends(heldLog(path))
	case "says-full":
		ends(saysFull(path))
	case "purges":
		ends(purges(path))
	case "lock":
		_, err := Open(context.Background(), path, Options{})
		fmt.Println(err)
	}
	return true
}

// ends prints a result and ends the process.
func ends(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

// appendForEver continues a history after from transactions, and prints those that it has appended.
func appendForEver(path string, seed uint64, from int) {
	h := newHistory(seed)
	for range from {
		h.next()
	}
	j, err := Open(context.Background(), path, Options{Cluster: "prod"})
	for err == nil {
		batches, _ := h.next()
		if _, err = j.Append(context.Background(), batches); err == nil {
			_, err = fmt.Println("appended", h.steps)
		}
	}
	fmt.Println("failed:", err)
}

func command(t *testing.T, what, path string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), append(env, "JOURNAL_CHILD="+what, "JOURNAL_PATH="+path)...)
	return cmd
}

// TestKill kills a process repeatedly while it appends. Acknowledged transactions are found once and complete; the one in
// progress is found as a whole or not at all.
func TestKill(t *testing.T) {
	for _, seed := range seeds(t, 2) {
		path := filepath.Join(t.TempDir(), "journal.db")
		rng := rand.New(rand.NewPCG(seed, 1))
		h, late := newHistory(seed), 0
		for range 4 {
			said := appendAndDie(t, path, seed, h.steps, 1+rng.IntN(25))
			j := open(t, path)
			done := stepsOf(t, j)
			if done != said && done != said+1 {
				t.Fatalf("%d transactions are in the journal, %d were acknowledged", done, said)
			}
			late += done - said
			for h.steps < done {
				h.next()
			}
			h.checkStates(t, j)
			h.check(t, path)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("seed %d: %d transactions, %d of them committed and not acknowledged", seed, h.steps, late)
	}
}

// appendAndDie runs a process until it has appended some more transactions, kills it, and returns the last one that it
// acknowledged.
func appendAndDie(t *testing.T, path string, seed uint64, from, more int) int {
	t.Helper()
	cmd := command(t, "append", path, fmt.Sprintf("JOURNAL_SEED=%d", seed), fmt.Sprintf("JOURNAL_FROM=%d", from))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := from
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "appended "))
		if err != nil {
			t.Error(lines.Text())
			break
		}
		said = n
		if said == from+more { // it continues meanwhile
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the process was not killed: %v", err)
	}
	return said
}

// stepsOf returns the number of a history's transactions that the journal has.
func stepsOf(t *testing.T, j *Journal) (steps int) {
	t.Helper()
	all, err := j.Streams(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sh := range all {
		n, err := strconv.Atoi(sh.Head.Identity)
		if err != nil {
			t.Fatal(err)
		}
		steps = max(steps, n)
	}
	return steps
}

func TestLockedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	out, err := command(t, "lock", path).Output()
	want := fmt.Sprintf("in use by process %d", os.Getpid())
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("another process: %s, %v; want %q", out, err, want)
	}
	_, err = Open(t.Context(), path, Options{})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || locked.Path != path {
		t.Errorf("this process: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Close(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
