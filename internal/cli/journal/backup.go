package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
)

// BackupOptions are the flags of backup.
type BackupOptions struct {
	IO   *terminal.IO
	Past past.Flags
	To   string
}

func newBackup(io *terminal.IO) *cobra.Command {
	o := &BackupOptions{IO: io}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the journal, even while it is being written",
		Long: "Copy the journal, as it is at one moment, to a new file. tattler run may keep\n" +
			"writing meanwhile. The file appears once it is complete. Do not use cp: it\n" +
			"misses the newest changes, which are in the write-ahead log beside the journal.\n\n" +
			"The redaction key is a separate file: back it up, too, but elsewhere.",
		Example: "  tattler journal backup /backup/journal-$(date +%F).db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.To = args[0]
			return Backup(cmd.Context(), o)
		},
	}
	cmd.Flags().SortFlags = false
	o.Past.Add(cmd)
	return cmd
}

// Backup copies the journal.
func Backup(ctx context.Context, o *BackupOptions) error {
	path, err := file(ctx, &o.Past)
	if err != nil {
		return err
	}
	line := progress{w: o.IO.Err, terminal: o.IO.ErrTTY}
	bytes, err := journal.Backup(ctx, path, o.To, func(done, total int64) {
		line.draw("copying: %s of %s pages", number(done), number(total))
	})
	line.clear()
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: choose another file", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.IO.Out, "%s is a backup of %s: %s\n", o.To, path, size(bytes))
	return err
}

// RestoreOptions are the flags of restore.
type RestoreOptions struct {
	IO   *terminal.IO
	Past past.Flags
	From string
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

func newRestore(io *terminal.IO) *cobra.Command {
	o := &RestoreOptions{IO: io}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace the journal with a backup",
		Long: "Replace the journal with a backup. The old journal is moved aside with its -wal\n" +
			"and -shm files, and can still be read with --journal. tattler run must not be\n" +
			"running. If the restore is interrupted, repeat it.\n\n" +
			"At its next start, tattler run catches up from the moment of the backup.\n" +
			"If the API server no longer has some of the versions since then, a gap is\n" +
			"recorded. Sinks receive every change since the backup again, with the same ids.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.From = args[0]
			return Restore(cmd.Context(), o)
		},
	}
	cmd.Flags().SortFlags = false
	o.Past.AddOffline(cmd)
	return cmd
}

// Restore replaces the journal with a backup.
func Restore(ctx context.Context, o *RestoreOptions) error {
	path, err := o.Past.Default()
	if err != nil {
		return err
	}
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	r, err := journal.Restore(ctx, o.From, path, now())
	var locked *journal.LockedError
	if errors.As(err, &locked) {
		return fmt.Errorf("%w: tattler run has it open; end it first", err)
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s is restored from %s: %s\n", path, o.From, size(r.Size))
	if r.Aside != "" {
		text += "the old journal is now " + r.Aside + "\n"
	}
	_, err = fmt.Fprint(o.IO.Out, text)
	return err
}
