// Package lint tests the whole repository: which package may import which, and why; that exported names are
// documented; and house rules that no linter knows. It has no other code.
package lint
