// Package test tests node-tagger as a user runs it: built, against a real control plane. It is a package of its own, and
// builds the program without the race detector: with it, the SDK's EC2 takes minutes to compile.
package test
