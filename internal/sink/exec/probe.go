package exec

import (
	"context"
	"fmt"
	"os/exec"
)

// Probe implements sink.Prober: it looks for the command, and does not run it.
func (s *Sink) Probe(context.Context) error {
	if _, err := exec.LookPath(s.o.program()); err != nil {
		return fmt.Errorf("command: %w", err)
	}
	return nil
}
