package gen

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// object is a JSON object.
type object = map[string]any

// mutator makes variations of recorded texts. Equal seeds and texts make equal variations, so that a value that occurs
// in several places remains equal in them.
type mutator uint64

// draw is a random sequence for a text.
func (m mutator) draw(text string) random {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return newRandom(uint64(m), h.Sum64())
}

// drops reports whether the optional part with this name is left out, in p of 100 variations.
func (m mutator) drops(p int, name ...string) bool {
	return m.draw(strings.Join(name, "\x00")).chance(p)
}

// vary replaces the times, hexadecimal numbers and decimal numbers in s by others of the same length.
func (m mutator) vary(s string) string {
	if _, err := time.Parse(time.RFC3339, s); err == nil {
		return time.Unix(Epoch+int64(m.draw(s).IntN(40*24*3600)), 0).UTC().Format(time.RFC3339)
	}
	var b strings.Builder
	for len(s) > 0 {
		n, digits := span(s)
		if n == 0 {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		b.WriteString(m.number(s[:n], digits))
		s = s[n:]
	}
	return b.String()
}

// span is the length of the lower-case word at the start of s if it consists of hexadecimal digits, and how many of them
// are decimal. It is 1 for other words' letters.
func span(s string) (n, digits int) {
	for n < len(s) && strings.IndexByte(hexDigits, s[n]) >= 0 {
		if s[n] <= '9' {
			digits++
		}
		n++
	}
	return n, digits
}

func (m mutator) number(s string, digits int) string {
	r := m.draw(s)
	switch {
	case len(s) >= 7 && digits > 0 && digits < len(s):
		return r.hex(len(s))
	case digits == len(s) && len(s) >= 2 && s[0] != '0' && s != "2026":
		return r.string("123456789", 1) + r.string("0123456789", len(s)-1)
	}
	return s
}

// text varies the text at a key of o, if it has one.
func (m mutator) text(o object, key string) {
	if s, ok := o[key].(string); ok {
		o[key] = m.vary(s)
	}
}

// texts varies the texts of a list.
func (m mutator) texts(list any) {
	all, _ := list.([]any)
	for i, s := range all {
		if s, ok := s.(string); ok {
			all[i] = m.vary(s)
		}
	}
}

// scale multiplies the processors and the memory in v, wherever it has them, by powers of two.
func (m mutator) scale(v any) {
	switch v := v.(type) {
	case object:
		for key, child := range v {
			list, ok := child.(object)
			if !ok || key != "requests" && key != "limits" && key != "allocatedResources" {
				m.scale(child)
				continue
			}
			for _, name := range []string{"cpu", "memory"} {
				if text, ok := list[name].(string); ok {
					list[name] = m.quantity(name, text)
				}
			}
		}
	case []any:
		for _, child := range v {
			m.scale(child)
		}
	}
}

func (m mutator) quantity(name, text string) string {
	q, shift := resource.MustParse(text), m.draw(name).IntN(4) // × 1/2 … × 4
	if name == "cpu" {
		return resource.NewMilliQuantity(q.MilliValue()<<shift/2, resource.DecimalSI).String()
	}
	return resource.NewQuantity(q.Value()<<shift/2, resource.BinarySI).String()
}

// tree varies all texts and numbers below v, and drops optional parts of its maps and the ends of its lists.
func (m mutator) tree(v any, drop int, path string) any {
	switch v := v.(type) {
	case object:
		for key, child := range v {
			at := path + "." + key
			if key != "name" && m.drops(drop, at) { // a name may be a list's merge key
				delete(v, key)
			} else {
				v[key] = m.tree(child, drop, at)
			}
		}
		return v
	case []any:
		for i := range v {
			if i > 0 && m.drops(drop, path, fmt.Sprint(i)) {
				return v[:i]
			}
			v[i] = m.tree(v[i], drop, fmt.Sprint(path, "[", i))
		}
		return v
	case string:
		return m.vary(v)
	case int64:
		return m.integer(v)
	case float64: // as encoding/json decodes numbers
		if v == float64(int64(v)) {
			return m.integer(int64(v))
		}
		return m.draw(fmt.Sprint(v)).Float64()
	}
	return v
}

// integer draws another integer with as many digits; small ones remain.
func (m mutator) integer(v int64) int64 {
	if v < 10 {
		return v
	}
	var n int64
	_, _ = fmt.Sscan(m.vary(fmt.Sprint(v)), &n)
	return n
}
