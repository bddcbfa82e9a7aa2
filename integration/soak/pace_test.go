//go:build !race

package soak

// fastest is how many writes a second a dozen views follow on two cores. More would only wait in line;
// bursts are for that.
const fastest = 500
