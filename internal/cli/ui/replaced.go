package ui

import (
	"fmt"
	"os"
)

// samePlace returns a function that returns an error once another file, or none, is at the path of a journal. The open file
// would go on without new changes.
func samePlace(path string) (func() error, error) {
	opened, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return func() error {
		now, err := os.Stat(path)
		switch {
		case err != nil:
			return fmt.Errorf("The journal can no longer be read: %w. Start tattler ui again when it is back.", err) //nolint:staticcheck,revive // a text for people
		case !os.SameFile(opened, now):
			return fmt.Errorf("Another file is at %s since this page was started, such as a restored backup. Start tattler ui again to read it.", path) //nolint:staticcheck,revive // a text for people
		}
		return nil
	}, nil
}
