package wire

import "github.com/tattler-dev/tattler/internal/jsonscan"

// value skips one value, checking its syntax.
func (s *scanner) value() error {
	if s.at() == '"' { // nearly always true
		return s.str()
	}
	c, err := s.must()
	if err != nil {
		return err
	}
	switch c {
	case '"':
		return s.str()
	case '{', '[':
		if s.depth == maxDepth && !s.droppable {
			return s.syntax(tooDeep)
		}
		if s.depth == maxDepth {
			return s.deeper()
		}
		s.depth++
		if c == '{' {
			err = s.fields()
		} else {
			err = s.values()
		}
		s.depth--
		return err
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	if c == '-' || isDigit(c) {
		return s.number()
	}
	return s.syntax("want a value")
}

// deeper skips the object or array at pos at any depth, by counting brackets; its content is never read.
func (s *scanner) deeper() error {
	s.deep = true
	for open := 0; ; {
		c, err := s.must()
		if err != nil {
			return err
		}
		switch c {
		case '"':
			if err := s.str(); err != nil {
				return err
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		if s.pos++; open == 0 {
			return nil
		}
	}
}

// fields skips the object at pos.
func (s *scanner) fields() error {
	s.pos++
	c, err := s.must()
	if err != nil {
		return err
	}
	if c == '}' {
		s.pos++
		return nil
	}
	for {
		if c != '"' {
			return s.syntax("want a field's name")
		}
		if err := s.str(); err != nil {
			return err
		}
		if s.at() == ':' {
			s.pos++
		} else if err := s.expect(':'); err != nil {
			return err
		}
		if err := s.value(); err != nil {
			return err
		}
		if c = s.at(); c <= ' ' {
			if c, err = s.must(); err != nil {
				return err
			}
		}
		if c == '}' {
			s.pos++
			return nil
		}
		if c != ',' {
			return s.syntax("want , or }")
		}
		s.pos++
		if c = s.at(); c <= ' ' {
			if c, err = s.must(); err != nil {
				return err
			}
		}
	}
}

// values skips the array at pos.
func (s *scanner) values() error {
	s.pos++
	for first := true; ; first = false {
		if more, err := s.elem(first, ']'); !more || err != nil {
			return err
		}
		if err := s.value(); err != nil {
			return err
		}
	}
}

// str skips the string at pos.
func (s *scanner) str() error {
	s.pos++
	for {
		s.pos = jsonscan.Run(s.buf, s.pos)
		if s.at() == '"' { // nearly always true
			s.pos++
			return nil
		}
		c, err := s.peek()
		if err != nil {
			return inside(err)
		}
		switch {
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case c < ' ':
			return s.syntax("control character in a string")
		} // else the window ended here and was filled again
	}
}

func (s *scanner) escape() error {
	s.pos++
	c, err := s.peek()
	if err != nil {
		return inside(err)
	}
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		s.pos++
	default:
		return s.syntax("unknown escape")
	}
	for range 4 {
		c, err := s.peek()
		if err != nil {
			return inside(err)
		}
		if !jsonscan.IsHex(c) {
			return s.syntax("want four hexadecimal digits")
		}
		s.pos++
	}
	return nil
}

// number skips the number at pos.
func (s *scanner) number() error {
	s.accept("-")
	c, err := s.peek()
	if err != nil {
		return inside(err)
	}
	if c == '0' {
		s.pos++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.accept(".") {
		if err := s.digits(); err != nil {
			return err
		}
	}
	if s.accept("eE") {
		s.accept("+-")
		return s.digits()
	}
	return nil
}

// accept consumes the next byte if it is in set. A read error surfaces at the next byte that is required.
func (s *scanner) accept(set string) bool {
	c, err := s.peek()
	if err != nil {
		return false
	}
	for i := range len(set) {
		if c == set[i] {
			s.pos++
			return true
		}
	}
	return false
}

// digits skips one digit or more.
func (s *scanner) digits() error {
	for n := 0; ; n++ {
		c, err := s.peek()
		if err == nil && isDigit(c) {
			s.pos++
			continue
		}
		if n > 0 {
			return nil
		}
		if err != nil {
			return inside(err)
		}
		return s.syntax("want a digit")
	}
}

func (s *scanner) literal(word string) error {
	for i := range len(word) {
		c, err := s.peek()
		if err != nil {
			return inside(err)
		}
		if c != word[i] {
			return s.syntax("want " + word)
		}
		s.pos++
	}
	return nil
}
