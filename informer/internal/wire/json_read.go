package wire

import (
	"errors"
	"io"
)

// jsonMeta reads an object's metadata. It reuses namespace, without an allocation, if that is the object's.
func jsonMeta(raw []byte, namespace string) (Meta, error) {
	s := scan(raw)
	m, bad, err := s.object(namespace)
	if err == nil {
		err = s.nothing()
	}
	if err != nil {
		return Meta{}, s.whole(err)
	}
	if bad != "" {
		return Meta{}, &ObjectError{Msg: bad}
	}
	return m, nil
}

// twice is the error for an object that readers would interpret differently: some decoders merge duplicate
// fields, some take the last, and a reader of a single field takes the first.
const twice = "metadata, or a field of it, comes twice"

// object reads the object at pos. bad is the reason if the value is well-formed but not a usable object. It
// reuses namespace as jsonMeta does.
func (s *scanner) object(namespace string) (m Meta, bad string, err error) {
	c, err := s.must()
	if err != nil {
		return m, "", err
	}
	s.droppable, s.deep = true, false
	if c == '{' {
		bad, err = s.objectFields(&m, namespace)
	} else {
		bad, err = "not an object", s.value()
	}
	s.droppable = false
	if bad == "" && s.deep {
		bad = tooDeep
	}
	return m, bad, err
}

func (s *scanner) objectFields(m *Meta, namespace string) (bad string, err error) {
	var apiVersion, kind, metadata bool
	err = s.members(func(key []byte) (err error) {
		var text []byte
		switch string(key) {
		case "metadata":
			if metadata {
				bad = twice
			}
			metadata = true
			err = s.metadata(m, &bad, namespace)
		case "apiVersion":
			text, _, err = s.textBytes()
			apiVersion = len(text) > 0
		case "kind":
			text, _, err = s.textBytes()
			kind = len(text) > 0
		default:
			err = s.value()
		}
		return err
	})
	m.Typed = apiVersion && kind
	return bad, err
}

// metadata reads the value of the field "metadata".
func (s *scanner) metadata(m *Meta, bad *string, namespace string) error {
	c, err := s.must()
	if err != nil {
		return err
	}
	if c != '{' {
		*bad = "metadata is not an object"
		return s.value()
	}
	labels := false
	return s.members(func(key []byte) error {
		var into *string
		last := ""
		switch string(key) {
		case "labels":
			if labels {
				*bad = twice
			}
			labels = true
			return s.value()
		case "name":
			into = &m.Name
		case "namespace":
			into, last = &m.Namespace, namespace
		case "uid":
			into = &m.UID
		case "resourceVersion":
			into = &m.ResourceVersion
		default:
			return s.value()
		}
		v, ok, err := s.textBytes()
		if err != nil {
			return err
		}
		switch {
		case !ok:
			*bad = "a field of metadata must be a string"
		case *into != "":
			*bad = twice
		}
		*into = same(last, v)
		return nil
	})
}

// nothing checks that nothing follows.
func (s *scanner) nothing() error {
	if _, err := s.token(); !errors.Is(err, io.EOF) {
		return s.syntax("bytes after the object")
	}
	return nil
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// metaMembers calls field for each field of the metadata of a complete object, and checks that nothing follows
// the object.
func (s *scanner) metaMembers(field func(key []byte) error) error {
	err := s.members(func(key []byte) error {
		if string(key) != "metadata" {
			return s.value()
		}
		if err := s.orNull(field); err != nil {
			return err
		}
		return errEnough
	})
	return s.whole(err)
}

// whole turns the early end of a complete object into a syntax error: the connection is not to blame.
func (s *scanner) whole(err error) error {
	switch {
	case errors.Is(err, errEnough):
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return s.syntax("the end")
	}
	return err
}

// orNull is members that also accepts null.
func (s *scanner) orNull(field func(key []byte) error) error {
	if c, err := s.must(); err != nil || c != 'n' {
		return s.members(field)
	}
	return s.literal("null")
}

// stringMap reads a map of strings, or null.
func (s *scanner) stringMap(entry func(key, value []byte) error) error {
	return s.orNull(func(key []byte) error {
		value, ok, err := s.textBytes()
		if err != nil {
			return err
		}
		if !ok {
			return s.syntax("want a string")
		}
		return entry(key, value)
	})
}

// mustText reads a string, or null as the empty string.
func (s *scanner) mustText() (string, error) {
	v, ok, err := s.text()
	if err == nil && !ok {
		err = s.syntax("want a string")
	}
	return v, err
}

// jsonLabels yields an object's labels.
func jsonLabels(raw []byte, yield func(key, value []byte) bool) error {
	s := scan(raw)
	return s.metaMembers(func(key []byte) error {
		if string(key) != "labels" {
			return s.value()
		}
		err := s.stringMap(func(key, value []byte) error {
			if !yield(key, value) {
				return errEnough
			}
			return nil
		})
		if err != nil {
			return err
		}
		return errEnough
	})
}

// jsonInitialEnd reports whether a bookmark ends the initial events.
func jsonInitialEnd(raw []byte) bool {
	end := false
	s := scan(raw)
	err := s.metaMembers(func(key []byte) error {
		if string(key) != "annotations" {
			return s.value()
		}
		return s.stringMap(func(key, value []byte) error {
			if string(key) == initialEnd {
				end = string(value) == "true"
			}
			return nil
		})
	})
	return end && err == nil
}

// jsonShape reads the input of a fingerprint.
func jsonShape(raw []byte) (sh shape, ok bool) {
	s := scan(raw)
	err := s.metaMembers(func(key []byte) (err error) {
		switch string(key) {
		case "generateName":
			sh.generate, _, err = s.textBytes()
		case "labels":
			err = s.stringMap(func(key, value []byte) error {
				sh.label(key, value)
				return nil
			})
		case "ownerReferences":
			err = s.owners(&sh)
		default:
			err = s.value()
		}
		if err == nil && sh.complete() {
			err = errEnough // managedFields are most of the rest
		}
		return err
	})
	return sh, err == nil
}

// owners records the owner that is the controller.
func (s *scanner) owners(sh *shape) error {
	if c, err := s.must(); err != nil || c == 'n' {
		return s.value()
	}
	if err := s.expect('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.elem(first, ']')
		if !more || err != nil {
			return err
		}
		var kind []byte
		controller := false
		err = s.members(func(key []byte) (err error) {
			switch string(key) {
			case "kind":
				kind, _, err = s.textBytes()
			case "controller":
				if _, err = s.must(); err == nil {
					controller = s.at() == 't'
					err = s.value()
				}
			default:
				err = s.value()
			}
			return err
		})
		if err != nil {
			return err
		}
		if controller {
			sh.owner = kind
		}
	}
}
