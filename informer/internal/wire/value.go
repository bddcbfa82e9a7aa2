package wire

// value skips one value, checking its syntax.
func (s *scanner) value() error {
	s.stack = s.stack[:0]
	for {
		opened, err := s.begin()
		if err != nil {
			return err
		}
		if opened {
			continue
		}
		if done, err := s.end(); done || err != nil {
			return err
		}
	}
}

// begin consumes a scalar, an empty container, or the opening of a container up to its first value;
// it returns true for the latter.
func (s *scanner) begin() (opened bool, err error) {
	c, err := s.must()
	if err != nil {
		return false, err
	}
	switch {
	case c == '{' || c == '[':
		return s.open(c)
	case c == '"':
		return false, s.str()
	case c == '-' || isDigit(c):
		return false, s.number()
	case c == 't':
		return false, s.literal("true")
	case c == 'f':
		return false, s.literal("false")
	case c == 'n':
		return false, s.literal("null")
	}
	return false, s.syntax("want a value")
}

func (s *scanner) open(c byte) (bool, error) {
	s.pos++
	if len(s.stack) == maxDepth {
		return false, s.syntax("nested too deeply")
	}
	next, err := s.must()
	if err != nil {
		return false, err
	}
	if next == c+2 { // '{' and '}', '[' and ']' are two apart
		s.pos++
		return false, nil
	}
	s.stack = append(s.stack, c)
	if c == '{' {
		return true, s.field()
	}
	return true, nil
}

// end follows a complete value: it closes containers until another value begins (false) or none is
// open (true).
func (s *scanner) end() (done bool, err error) {
	for len(s.stack) > 0 {
		c, err := s.must()
		if err != nil {
			return false, err
		}
		in := s.stack[len(s.stack)-1]
		switch c {
		case ',':
			s.pos++
			if in == '{' {
				return false, s.field()
			}
			return false, nil
		case in + 2:
			s.pos++
			s.stack = s.stack[:len(s.stack)-1]
		default:
			return false, s.syntax("want , or " + string(rune(in+2)))
		}
	}
	return true, nil
}

// field skips the name of a field and its colon.
func (s *scanner) field() error {
	if c, err := s.must(); err != nil || c != '"' {
		return orSyntax(err, s.syntax("want a field's name"))
	}
	if err := s.str(); err != nil {
		return err
	}
	return s.expect(':')
}

// plain tells which bytes stand for themselves in a string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 256; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// str skips the string at pos.
func (s *scanner) str() error {
	s.pos++
	for {
		rest := s.buf[s.pos:]
		i := 0
		for i < len(rest) && plain[rest[i]] {
			i++
		}
		s.pos += i
		c, err := s.peek()
		if err != nil {
			return inside(err)
		}
		switch {
		case plain[c]: // the window ended here and was filled again
		case c == '"':
			s.pos++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		default:
			return s.syntax("control character in a string")
		}
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
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return s.syntax("want four hexadecimal digits")
		}
		s.pos++
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

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

// accept consumes the next byte if it is one of set. A read error shows at the next byte that is
// required.
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
