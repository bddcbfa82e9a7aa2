//go:build race

package upstream

// race means that the suites are built with the race detector, like this test.
const race = true
