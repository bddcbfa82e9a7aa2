// Package daemon is `tattler run`: it assembles capture, journal, sinks and the control socket, and shuts them
// down in order.
package daemon
