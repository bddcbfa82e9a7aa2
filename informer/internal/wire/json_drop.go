package wire

import "errors"

// span is a range of bytes.
type span struct{ from, to int }

// jsonDropManaged returns a copy of raw without managedFields, or raw itself if it has none or cannot be
// read.
func jsonDropManaged(raw []byte) []byte {
	var cuts []span
	s := scan(raw)
	err := s.members(func(key []byte) (err error) {
		if string(key) != "metadata" {
			return s.value()
		}
		if cuts, err = s.managedFields(); err != nil {
			return err
		}
		return errEnough
	})
	if !errors.Is(err, errEnough) || len(cuts) == 0 {
		return raw
	}
	size := len(raw)
	for _, c := range cuts {
		size -= c.to - c.from
	}
	out := make([]byte, 0, size)
	from := 0
	for _, c := range cuts {
		out = append(out, raw[from:c.from]...)
		from = c.to
	}
	return append(out, raw[from:]...)
}

// managedFields returns the ranges to cut from the metadata at pos so that it remains valid JSON. The comma
// before the field is cut with it; if no field remains before it, the comma after it.
func (s *scanner) managedFields() (cuts []span, err error) {
	if err := s.expect('{'); err != nil {
		return nil, err
	}
	kept := false
	for first := true; ; first = false {
		from := s.pos
		more, err := s.elem(first, '}')
		if !more || err != nil {
			return cuts, err
		}
		if !first && !kept {
			cuts = append(cuts, span{from, s.pos})
			from = s.pos
		}
		key, err := s.key()
		if err != nil {
			return nil, err
		}
		managed := string(key) == "managedFields"
		if err := s.value(); err != nil {
			return nil, err
		}
		if managed {
			cuts = append(cuts, span{from, s.pos})
		} else {
			kept = true
		}
	}
}
