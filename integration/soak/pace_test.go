//go:build !race

package soak

// fastest is the number of writes per second that a dozen views can follow on two cores. More would only queue
// up; bursts test that.
const fastest = 500
