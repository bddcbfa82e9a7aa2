package jsonmap

// Version is a decoded version of an object, with the positions of its parts in the text. The next version is decoded
// quickly from it, as only changed parts are read. It is immutable, and safe for concurrent use.
type Version struct {
	raw    []byte
	object map[string]any
	parts  []part
	shared int
}

// DecodeVersion is DecodeObject. It returns nil for an object that is invalid or needs the general decoder.
func DecodeVersion(raw []byte) *Version {
	return decodeVersion(&decoder{raw: raw, parts: make([]part, 0, len(raw)/64)})
}

// Next decodes the next version. Objects and arrays with the same text in both, at about the same position, share one
// value, except the object itself and its metadata, which each version owns. It returns nil like DecodeVersion.
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

// Raw returns the text, which must not be modified.
func (v *Version) Raw() []byte { return v.raw }

// Object returns the decoded object.
func (v *Version) Object() map[string]any { return v.object }

// Shared returns the length of the text whose values are shared with the previous version.
func (v *Version) Shared() int { return v.shared }

// Size returns about how many bytes the version takes in memory.
func (v *Version) Size() int { return 8*len(v.raw) + 56*cap(v.parts) }

// inherit records the parts within a part of the other object, itself included, whose text begins here as well.
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

// ownMetadata reports whether the value that begins here, or was just read, is metadata that is not shared.
func (d *decoder) ownMetadata() bool { return d.own && d.depth == 1 && d.names[1] == managedFields[1] }
