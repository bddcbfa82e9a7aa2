// Package consumer has the examples of docs/sinks, which tests compile and, where a fake can serve them,
// run: how a program takes changes from each bus, each once.
package consumer
