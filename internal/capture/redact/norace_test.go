//go:build !race

package redact

// perByte is the memory in bytes that redaction may take for each byte of an object.
const perByte = 250

// slower is how many times fewer random objects are tried.
const slower = 1
