//go:build race

package upstream

// race says that the suites are built with the race detector, as this test is.
const race = true
