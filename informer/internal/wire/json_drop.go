package wire

import "errors"

// span is a part of some bytes.
type span struct{ from, to int }

// jsonDropManaged copies raw without its managed fields; it returns raw where there are none, and
// where it cannot be read.
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

// managedFields finds what must be cut out of the metadata at pos, so that it stays JSON: the
// comma before the field goes with it, and where no other field stays before it, the one behind.
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
