package wire

// CompareVersions compares two resource versions of one resource: by length, then bytes, since they have up to
// 128 bits. ok is false if one is not a decimal number without leading zeros, or is "0" or "", which are not
// versions: such values can only be compared for equality.
//
// Source: KEP-5504, comparable resource versions; aggregated API servers may not follow it.
func CompareVersions(a, b string) (c int, ok bool) {
	if !numeric(a) || !numeric(b) {
		return 0, false
	}
	switch {
	case a == b:
		return 0, true
	case len(a) < len(b), len(a) == len(b) && a < b:
		return -1, true
	}
	return 1, true
}

// Older reports whether a is known to be older than b.
func Older(a, b string) bool {
	c, ok := CompareVersions(a, b)
	return ok && c < 0
}

func numeric(v string) bool {
	if v == "" || v[0] == '0' {
		return false
	}
	for i := range len(v) {
		if !isDigit(v[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
