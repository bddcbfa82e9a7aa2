// Package lint holds tests of the whole repository: which package may import which, and why; that
// everything exported is documented; and the house rules that no linter knows. It has no code.
package lint
