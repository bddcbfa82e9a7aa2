// Package usage is the error for a wrong flag, argument or parameter, as opposed to a failure.
package usage

import "fmt"

// Error says what is wrong with a flag, an argument or a parameter. The command exits with 2, and the API answers with 400.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// Errorf makes an Error.
func Errorf(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }
