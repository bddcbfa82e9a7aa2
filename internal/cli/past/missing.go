package past

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/tattler-dev/tattler/internal/cli/kube"
)

// Missing reports that nothing records: the user names no journal and no daemon, and there is no journal at the returned
// path, nor elsewhere on this machine. Any other problem is left to Open.
func (f *Flags) Missing(ctx context.Context) (path string, missing bool) {
	if f.Serving != nil || f.daemon != (daemonFlags{}) || f.Path != "" || f.Config != "" || os.Getenv(kube.JournalVariable) != "" {
		return "", false
	}
	path, err := f.File(ctx)
	if err != nil {
		return "", false
	}
	file, err := os.Stat(path)
	return path, errors.Is(err, fs.ErrNotExist) || err == nil && file.Mode().IsRegular() && file.Size() == 0
}
