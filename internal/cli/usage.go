package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// argumentCount matches the errors of cobra's argument validators, with the minimum that they accept, or the maximum if
// there is no minimum, and the number of arguments.
//
// Source: args.go of github.com/spf13/cobra v1.10.2.
var argumentCount = regexp.MustCompile(`^(?:requires|accepts) \D*(\d+)(?: and \d+)? arg\(s\), (?:only )?received (\d+)$`)

// plainError rewrites a library's error about the command line for users.
func plainError(cmd *cobra.Command, err error) string {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return fmt.Sprintf("--%s: %q %s", value.GetFlag().Name, value.GetValue(), invalid(value))
	}
	n := argumentCount.FindStringSubmatch(err.Error())
	if n == nil {
		return err.Error()
	}
	what := "too many arguments"
	if bound, received := number(n[1]), number(n[2]); received < bound {
		what = "an argument is missing"
	}
	usage := cmd.Use
	if cmd.HasParent() {
		usage = cmd.Parent().CommandPath() + " " + usage
	}
	return what + "; usage: " + usage
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // returns the largest int on overflow
	return n
}

// invalid describes what is wrong with a flag's value.
func invalid(e *pflag.InvalidValueError) string {
	switch typ := e.GetFlag().Value.Type(); {
	case errors.Is(e, strconv.ErrRange):
		return "is out of range"
	case typ == "int":
		return "is not a whole number"
	case typ == "bool":
		return "is neither true nor false"
	case typ == "duration":
		return "is not a duration, such as 30s or 5m"
	case strings.HasSuffix(typ, "Slice"):
		return "is not a list: " + e.Unwrap().Error()
	}
	return "cannot be used: " + e.Unwrap().Error()
}
