package compact

// Keeps reports whether obj is what v is kept decoded to.
func (h *Hot) Keeps(v *Version, decoder, obj any) bool {
	for d := v.hot.Load(); d != nil; d = d.next.Load() {
		if d.decoder == decoder {
			return d.obj == obj
		}
	}
	return false
}

// Forget lets go of what v was decoded to, pinned or not. Unlike Drop it leaves the version as it was: who decodes it
// anew may keep or pin that.
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

// ForgetUnpinned is Forget for every object that is not pinned, whatever its version.
func (h *Hot) ForgetUnpinned() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.hand != nil {
		d := h.hand
		h.unring(d)
		h.remove(d)
	}
}
