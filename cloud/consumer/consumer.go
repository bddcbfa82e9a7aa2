// Package consumer has the examples of docs/sinks: how a program takes changes from each bus, each once. Tests
// compile them and, if there is a fake to serve them, run them.
package consumer
