// Command onchange is a program for the exec sink: it notes each change once.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tattler-dev/tattler/event"
)

func main() {
	if err := note(os.Stdin, "changes.txt"); err != nil {
		fmt.Fprintln(os.Stderr, err) // Tattler shows it
		os.Exit(75)                  // EX_TEMPFAIL: send it again
	}
}

// note appends a line for each change whose id the file does not have.
func note(events io.Reader, path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	seen, err := io.ReadAll(file)
	for dec := json.NewDecoder(events); err == nil; {
		var e event.Event
		if err = dec.Decode(&e); err == nil && !bytes.Contains(seen, []byte(e.ID)) {
			_, err = fmt.Fprintln(file, e.ID, e.Data.Op, e.Subject)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil // that was all
	}
	return errors.Join(err, file.Close())
}
