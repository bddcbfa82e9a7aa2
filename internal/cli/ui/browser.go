package ui

import (
	"context"
	"os/exec"
	"runtime"
)

// browse opens a URL in the user's browser, and does not wait for it.
func (o *Options) browse(ctx context.Context, url string) error {
	if o.Browser != nil {
		return o.Browser(ctx, url)
	}
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the browser may outlive us
	return nil
}
