package jsonmap

// Version is one version of an object, decoded, and where in its text everything is: from it the next version is
// decoded quickly, as only what has changed is read. It is not written to, and safe for concurrent use.
type Version struct {
	raw    []byte
	object map[string]any
	parts  []part
	shared int
}

// DecodeVersion is DecodeObject. It returns nil for an object that needs the general decoder, or is broken.
func DecodeVersion(raw []byte) *Version {
	return decodeVersion(&decoder{raw: raw, parts: make([]part, 0, len(raw)/64)})
}

// Next decodes the next version. Objects and arrays that have the same text in both, and nearly the same place, are one
// value in memory, but for the object itself and its metadata, of which each version has its own. It returns nil as
// DecodeVersion does.
func (v *Version) Next(raw []byte) *Version {
	return decodeVersion(&decoder{
		raw: raw, parts: make([]part, 0, len(v.parts)+16), other: &decoder{raw: v.raw, parts: v.parts},
	})
}

func decodeVersion(d *decoder) *Version {
	d.spare, d.noted, d.own = true, true, true
	m, ok := d.whole()
	if !ok {
		return nil
	}
	return &Version{raw: d.raw, object: m, parts: d.parts, shared: d.shared}
}

// Raw is the text. It is shared.
func (v *Version) Raw() []byte { return v.raw }

// Object is the object.
func (v *Version) Object() map[string]any { return v.object }

// Shared is how much of the text is of values that the version before shares.
func (v *Version) Shared() int { return v.shared }

// Size is about how many bytes the version keeps in memory.
func (v *Version) Size() int { return 8*len(v.raw) + 56*cap(v.parts) }

// inherit notes the parts within one of the other object, itself included, whose text begins here as well.
func (d *decoder) inherit(was *part) {
	i, _ := d.other.find(was.from)
	shift := d.pos - was.from
	for _, p := range d.other.parts[i:] {
		if p.from >= was.to {
			return
		}
		p.from, p.to = p.from+shift, p.to+shift
		d.parts = append(d.parts, p)
	}
}

// ownMetadata reports whether what begins here, or was read last, is the metadata of an object that shares it with no other version.
func (d *decoder) ownMetadata() bool { return d.own && d.depth == 1 && d.names[1] == managedFields[1] }
