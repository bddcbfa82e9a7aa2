//go:build race

package soak

// fastest is lower with the race detector, under which a view of maps reads about thirty pods a second beside
// the others.
const fastest = 50
