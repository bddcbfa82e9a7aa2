package amazon

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Check validates the options that both sinks share. Its errors name the wrong key.
func Check(limit sink.Size, timeout time.Duration, a Access, t sink.TLS) error {
	switch {
	case limit != 0 && (limit < lowestLimit || limit > highestLimit):
		return errors.New("limit: from 8Ki to 1Mi")
	case timeout < 0:
		return errors.New("timeout: must not be negative")
	}
	if err := a.Validate(); err != nil {
		return fmt.Errorf("aws: %w", err)
	}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	return nil
}

// Defaults replaces zero values by defaults.
func Defaults(limit sink.Size, timeout time.Duration) (sink.Size, time.Duration) {
	return cmp.Or(limit, defaultLimit), cmp.Or(timeout, 10*time.Second)
}
