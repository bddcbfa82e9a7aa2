package clientgo

import (
	"fmt"
	"strings"
	"testing"
)

// sayings are notifications in short: + adds, ~ updates, - deletes, = resyncs; ! after a + means initial.
func saying(s string) *notification {
	ops := map[byte]op{'+': added, '~': updated, '-': deleted, '=': resynced}
	n := &notification{op: ops[s[0]], key: s[1:2], initial: strings.HasSuffix(s, "!")}
	state := strings.TrimSuffix(s[2:], "!")
	old, now, both := strings.Cut(state, ">")
	if !both {
		now = old
	}
	n.old, n.new = held(old), held(now)
	if n.op == added || n.op == resynced {
		n.old = nil
	}
	if n.op == deleted {
		n.new = nil
	}
	return n
}

func said(n *notification) string {
	switch n.op {
	case added:
		mark := ""
		if n.initial {
			mark = "!"
		}
		return fmt.Sprintf("+%s%s%s", n.key, n.new.obj, mark)
	case updated:
		return fmt.Sprintf("~%s%s>%s", n.key, n.old.obj, n.new.obj)
	case deleted:
		return fmt.Sprintf("-%s%s", n.key, n.old.obj)
	}
	return fmt.Sprintf("=%s%s", n.key, n.new.obj)
}

func TestQueueFolds(t *testing.T) {
	for _, tc := range []struct {
		why      string
		in, want string
		dead     int
	}{
		{"what a handler does not know yet is only added", "+a1 ~a1>2 ~a2>3", "+a3", 0},
		{"and stays initial", "+a1! ~a1>2", "+a2!", 0},
		{"an object that came and went is not delivered", "+a1 ~a1>2 -a2 +b1", "+b1", 0},
		{"but is no longer waited for", "+a1! -a1", "", 1},
		{"updates are merged, from the last delivered version", "~a1>2 ~a2>3", "~a1>3", 0},
		{"a deletion is the last word", "~a1>2 -a2", "-a2", 0},
		{"an object that comes back is deleted and added", "~a1>2 -a2 +a3 ~a3>4", "-a2 +a4", 0},
		{"and may go again", "-a1 +a2 -a2", "-a1", 0},
		{"a change of an object that the program added is not lost", "-a1 ~a5>6 ~a6>7", "-a1 ~a5>7", 0},
		{"until its deletion, which is delivered once", "-a1 ~a5>6 -a6 +b1", "-a6 +b1", 0},
		{"and may come back", "-a1 ~a5>6 -a6 +a7", "-a6 +a7", 0},
		{"an object that the program added is resynced", "-a1 =a5", "-a1 =a5", 0},
		{"a deletion is delivered with its last state", "-a1 -a2", "-a2", 0},
		{"objects keep the place of their first change", "~a1>2 ~b1>2 ~a2>3", "~a1>3 ~b1>2", 0},
		{"a resync is merged into a queued change", "~a1>2 =a2 =b1", "~a1>2 =b1", 0},
		{"and gives way to a change", "=a1 ~a1>2", "~a1>2", 0},
		{"or to the end", "=a1 -a1", "-a1", 0},
		{"a relist may add twice what it names twice", "+a1 +a2", "+a2", 0},
	} {
		dead := 0
		q := newQueue(0, true, func(*notification) { dead++ }, held)
		for _, s := range strings.Fields(tc.in) {
			q.push(saying(s))
		}
		if got := drain(t, q); got != tc.want || dead != tc.dead {
			t.Errorf("%s: %s is delivered as %q, %d dropped; want %q, %d", tc.why, tc.in, got, dead, tc.want, tc.dead)
		}
	}
}

// drain takes all notifications and checks that the queue is empty.
func drain(t *testing.T, q *queue) string {
	t.Helper()
	var out []string
	for q.waiting() > 0 {
		n, ok := q.next()
		if !ok {
			t.Fatal("the queue is closed")
		}
		out = append(out, said(n))
	}
	if q.first != nil || q.last != nil || q.bytes != 0 || len(q.fold) != 0 {
		t.Errorf("an empty queue holds %d bytes", q.bytes)
	}
	return strings.Join(out, " ")
}

func TestQueueKeepsEveryNoteWithinItsBudget(t *testing.T) {
	q := newQueue(1<<20, false, func(*notification) {}, held)
	var want []string
	for i := range 5000 {
		s := fmt.Sprintf("+a%d", i)
		if q.push(saying(s)) {
			t.Fatal("it folds")
		}
		if want = append(want, s); i%3 == 0 {
			n, _ := q.next()
			if said(n) != want[0] {
				t.Fatalf("got %s, want %s", said(n), want[0])
			}
			want = want[1:]
		}
	}
	if got := drain(t, q); got != strings.Join(want, " ") {
		t.Error("notifications are missing or out of order")
	}
}

func TestQueueFoldsBeyondItsBudgetUntilItIsEmpty(t *testing.T) {
	q := newQueue(3*saying("~a1>2").weight(), false, func(*notification) {}, held)
	began := 0
	push := func(s string) {
		if q.push(saying(s)) {
			began++
		}
	}
	for i := range 10 {
		push(fmt.Sprintf("~a%d>%d", i, i+1))
	}
	if _, _, lost := q.lag(); began != 1 || lost != 9 {
		t.Errorf("it began to fold %d times and folded away %d notifications, want 1 and 9", began, lost)
	}
	if got := drain(t, q); got != "~a0>10" {
		t.Errorf("got %s", got)
	}
	push("~a1>2")
	push("~a2>3")
	if got := drain(t, q); got != "~a1>2 ~a2>3" {
		t.Errorf("after catching up, want every version again: %s", got)
	}
}
