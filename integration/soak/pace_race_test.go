//go:build race

package soak

// fastest is less with the race detector, under which a view of maps reads some thirty pods a second
// beside the others.
const fastest = 50
