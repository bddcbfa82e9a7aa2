package clientgo

// What happens to an informer's objects: each method changes the cache, then tells the handlers.

// maxDecodedNotes is how many notes may be queued for a handler whose objects are kept decoded for it, so
// that a handler that keeps up costs no decoding. They count against its budget, and go first.
const maxDecodedNotes = 256

// put stores a new state of an object.
func (s *sharedInformer) put(c change) { s.metrics.process(func() { s.doPut(c) }) }

func (s *sharedInformer) doPut(c change) {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	s.sync() // what comes before a list is complete without one
	changes := []change{c}
	s.table.apply(changes, false, c.version())
	s.table.cacheChanged(&changes[0])
	s.stored(&changes[0], s.handlersKeepUp())
}

// drop deletes an object, which need not be there. What was said of it last is told.
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

// miss deletes an object of whose deletion no more is known.
func (s *sharedInformer) deleteMissed(key string) {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	changes := []change{{key: key}}
	s.table.apply(changes, false, nil)
	if old := changes[0].old; old != nil {
		s.notify(&notification{op: deleted, missed: true, key: key, old: old}, false)
	}
}

// replace makes the objects those of a list: first everything is stored, then deletions are told, then
// what was added or replaced.
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

// resync tells those who asked for it of every object.
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

// sync says that the first list is complete. The caller holds turn.
func (s *sharedInformer) sync() {
	if s.HasSynced() {
		return
	}
	close(s.done.ch)
	for _, l := range s.listeners {
		l.synced.UpstreamHasSynced()
	}
}

// stored tells of a change that was applied. The caller holds turn.
func (s *sharedInformer) stored(c *change, atHand bool) {
	n := &notification{op: added, initial: !s.HasSynced(), key: c.key, new: c.item}
	if atHand {
		n.newObj = c.obj
	} else { // who is quick still finds it
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

// recreated tells that two UIDs are of two objects; fakes leave them empty.
func recreated(before, now string) bool { return before != "" && now != "" && before != now }

// tell queues a note for every handler; one of what did not change, for those who asked to hear of it.
// The caller holds turn.
func (s *sharedInformer) notify(n *notification, unchanged bool) {
	for _, l := range s.listeners {
		if !unchanged || l.syncing {
			l.add(n)
		}
	}
}

// atHand tells that handlers keep up. The caller holds turn.
func (s *sharedInformer) handlersKeepUp() bool {
	for _, l := range s.listeners {
		if l.queue.waiting() > maxDecodedNotes {
			return false
		}
	}
	return true
}

// version is what the change says that the last version is; nil is nothing.
func (c *change) version() *string {
	if v, ok := c.item.version(); ok {
		return &v
	}
	return nil
}
