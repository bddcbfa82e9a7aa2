package redact

// looked counts the bytes that were looked at, if a test wants to know: a cost that is the same on every machine. A search
// may look at a text again for each name in it, but then only at a bounded part.
var looked *int

// cost counts n bytes, or as much work.
func cost(n int) {
	if looked != nil {
		*looked += n
	}
}
