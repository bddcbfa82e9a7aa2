// Package daemon is `tattler run`: it puts capture, journal, sinks and answers together, and takes them
// down in order.
package daemon
