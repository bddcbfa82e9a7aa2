package harness

// clientRequest passes a request to Valgrind; a processor does nothing. The first argument is its number.
//
//go:noescape
func clientRequest(args *[6]uint64)
