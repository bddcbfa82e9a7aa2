//go:build race

package redact

// perByte is ten times as much as otherwise: the race detector makes sync.Pool drop the buffers of regular expressions at random.
const perByte = 2500

// slower is how many times fewer random objects are tried.
const slower = 2
