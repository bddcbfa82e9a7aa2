package controller

import "testing"

// TestLanesWhileReconciled: a change of a key that is being reconciled is pushed after that call. An object of a first
// list with the same key does not move it behind the others.
func TestLanesWhileReconciled(t *testing.T) {
	key := func(name string) Key { return Key{Name: name} }
	for why, adds := range map[string][]func(*lanes, Key){
		"the change first": {(*lanes).change, (*lanes).initial},
		"the change last":  {(*lanes).initial, (*lanes).change},
	} {
		l := newLanes()
		l.initial(key("waits"))
		l.Push(key("waits"))
		for _, add := range adds { // the queue does not push yet
			add(l, key("runs"))
		}
		l.Push(key("runs"))
		if got := l.Pop(); got != key("runs") {
			t.Errorf("%s: %s comes first", why, got)
		}
		if got := l.Pop(); got != key("waits") || l.Len() != 0 {
			t.Errorf("%s: then %s, and %d more", why, got, l.Len())
		}
		if len(l.first)+len(l.changed)+len(l.slow) != 0 {
			t.Errorf("%s: something is kept: %+v", why, l)
		}
	}
}
