package compact

// Keeps reports whether obj is the kept decoded form of v.
func (h *Hot) Keeps(v *Version, decoder, obj any) bool {
	for d := v.hot.Load(); d != nil; d = d.next.Load() {
		if d.decoder == decoder {
			return d.obj == obj
		}
	}
	return false
}

// Forget removes v's decoded objects, pinned or not. Unlike Drop, it allows them to be kept or pinned again.
func (h *Hot) Forget(v *Version) {
	if v == nil || v.hot.Load() == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var rest *decoded
	for d := v.hot.Load(); d != nil; d = d.next.Load() {
		if d == gone {
			rest = gone
			break
		}
		h.unring(d)
		h.bytes.Add(-d.size)
	}
	v.hot.Store(rest)
}

// ForgetUnpinned forgets every object that is not pinned, of all versions.
func (h *Hot) ForgetUnpinned() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.hand != nil {
		d := h.hand
		h.unring(d)
		h.remove(d)
	}
}
