package clientgo

// Changes of an informer's objects: each method changes the cache, then notifies the handlers.

// maxDecodedNotes is the queue length up to which a handler's notifications hold decoded objects, so that a handler
// that keeps up costs no decoding. The objects count against its budget and are dropped first.
const maxDecodedNotes = 256

// put stores a new state of an object.
func (s *sharedInformer) put(c change) { s.metrics.process(func() { s.doPut(c) }) }

func (s *sharedInformer) doPut(c change) {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	s.sync() // a change before the first list counts as that list
	changes := []change{c}
	s.table.apply(changes, false, c.version())
	s.table.cacheChanged(&changes[0])
	s.stored(&changes[0], s.handlersKeepUp())
}

// drop deletes an object, which need not exist, and delivers last as its final state.
func (s *sharedInformer) drop(key string, last any) {
	s.metrics.process(func() { s.doDrop(key, last) })
}

func (s *sharedInformer) doDrop(key string, last any) {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	s.sync()
	s.table.apply([]change{{key: key}}, false, seen(last))
	n := &notification{op: deleted, key: key, oldObj: last, old: held(last)}
	if !s.handlersKeepUp() {
		n = n.withoutObjects(s.table.packing.item)
	}
	s.notify(n, false)
}

// deleteMissed deletes an object whose final state is not known.
func (s *sharedInformer) deleteMissed(key string) {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	changes := []change{{key: key}}
	s.table.apply(changes, false, nil)
	if old := changes[0].old; old != nil {
		s.notify(&notification{op: deleted, missed: true, key: key, old: old}, false)
	}
}

// replace makes a list the current state: it stores everything, then notifies of deletions, then of additions and
// replacements.
func (s *sharedInformer) replace(changes []change, version string) {
	s.metrics.process(func() { s.doReplace(changes, version) })
}

func (s *sharedInformer) doReplace(changes []change, version string) {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	gone := s.table.apply(changes, true, &version)
	for i := range gone {
		n := &notification{op: deleted, missed: true, key: gone[i].key, old: gone[i].old}
		if s.handlersKeepUp() {
			n.oldObj = gone[i].was
		}
		s.notify(n, false)
	}
	for i := range changes {
		s.stored(&changes[i], s.handlersKeepUp())
	}
	s.sync()
}

// resync notifies handlers that are due of every object.
func (s *sharedInformer) resync() {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	for _, it := range s.table.items() {
		_, versioned := it.item.version()
		s.notify(&notification{op: resynced, key: it.key, new: it.item}, versioned)
	}
}

func (s *sharedInformer) bookmark(version string) {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	s.table.apply(nil, false, &version)
}

// sync marks the first list as complete. The caller holds notifyMu.
func (s *sharedInformer) sync() {
	if s.HasSynced() {
		return
	}
	close(s.done.ch)
	for _, l := range s.listeners {
		l.synced.UpstreamHasSynced()
	}
}

// stored notifies of an applied change. The caller holds notifyMu.
func (s *sharedInformer) stored(c *change, atHand bool) {
	n := &notification{op: added, initial: !s.HasSynced(), key: c.key, new: c.item}
	if atHand {
		n.newObj = c.obj
	} else { // a fast handler may still find it
		n.newWeak.set(c.obj)
	}
	if c.obj != nil {
		s.learnKind(c.obj)
	}
	if c.old == nil {
		s.notify(n, false)
		return
	}
	n.initial = false
	if s.engine.opts.Recreate && recreated(c.old.uid(), c.item.uid()) {
		gone := &notification{op: deleted, key: c.key, old: c.old}
		if atHand {
			gone.oldObj = c.was
		}
		s.notify(gone, false)
		s.notify(n, false)
		return
	}
	n.op, n.old = updated, c.old
	if atHand {
		n.oldObj = c.was
	}
	before, ok := c.old.version()
	now, also := c.item.version()
	s.notify(n, ok && also && before == now)
}

// recreated reports whether two UIDs belong to different objects. Fakes leave them empty.
func recreated(before, now string) bool { return before != "" && now != "" && before != now }

// notify queues a notification for every handler. An unchanged object goes only to handlers that are being resynced.
// The caller holds notifyMu.
func (s *sharedInformer) notify(n *notification, unchanged bool) {
	for _, l := range s.listeners {
		if !unchanged || l.syncing {
			l.add(n)
		}
	}
}

// handlersKeepUp reports whether no handler has more than maxDecodedNotes queued. The caller holds notifyMu.
func (s *sharedInformer) handlersKeepUp() bool {
	for _, l := range s.listeners {
		if l.queue.waiting() > maxDecodedNotes {
			return false
		}
	}
	return true
}

// version returns the version to record as the last one seen, or nil.
func (c *change) version() *string {
	if v, ok := c.item.version(); ok {
		return &v
	}
	return nil
}
