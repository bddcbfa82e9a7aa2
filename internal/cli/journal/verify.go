package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
)

// VerifyOptions are the flags of verify.
type VerifyOptions struct {
	IO   *terminal.IO
	Past past.Flags
	// Stories also builds the stories again from the changes, and compares.
	Stories bool
}

// Verify reads everything and prints damage as it is found; then it returns an error.
func Verify(ctx context.Context, o *VerifyOptions) error {
	path, err := file(ctx, &o.Past)
	if err != nil {
		return err
	}
	v := verifying{out: o.IO.Out, line: progress{w: o.IO.Err, terminal: o.IO.ErrTTY}}
	rep, err := v.read(ctx, path)
	v.line.clear()
	if err = errors.Join(err, v.failed); err != nil {
		return err
	}
	if rep.Damaged == 0 {
		_, err := fmt.Fprintf(o.IO.Out, "%s is not damaged: %s and %s were read\n", path,
			plural(int64(rep.Changes), "change", "changes"), plural(int64(rep.Objects), "object", "objects"))
		if err == nil && o.Stories {
			err = o.stories(ctx)
		}
		return err
	}
	if _, err := io.WriteString(o.IO.Out, advice(&rep)); err != nil {
		return err
	}
	return fmt.Errorf("%s has %s", path, plural(int64(rep.Damaged), "damage", "damages"))
}

// stories prints how the recorded stories differ from those that the changes make.
func (o *VerifyOptions) stories(ctx context.Context) error {
	j, err := o.Past.Open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	differences := 0
	var failed error
	n, err := j.CheckStories(ctx, func(text string) {
		differences++
		if _, err := fmt.Fprintln(o.IO.Out, terminal.Line(text)); failed == nil {
			failed = err
		}
	})
	switch {
	case err != nil || failed != nil:
		return errors.Join(err, failed)
	case differences > 0:
		return fmt.Errorf("%s of %s differ from what the changes make", number(int64(differences)), plural(int64(n), "story", "stories"))
	}
	_, err = fmt.Fprintf(o.IO.Out, "%s: the changes make the same\n", plural(int64(n), "story", "stories"))
	return err
}

// verifying prints damage as it is found.
type verifying struct {
	out    io.Writer
	line   progress
	failed error // of a write
}

func (v *verifying) read(ctx context.Context, path string) (journal.Report, error) {
	r, err := journal.OpenReader(ctx, path)
	var d *journal.DamagedError
	if errors.As(err, &d) { // damaged where it is read first
		v.damage(journal.Damage{Part: journal.Page, Text: fmt.Sprintf("%s: %v", d.What, d.Err)})
		return journal.Report{Damaged: 1, By: map[journal.Part]int{journal.Page: 1}}, nil
	}
	if err != nil {
		return journal.Report{}, err
	}
	defer r.Close()
	return r.Verify(ctx, journal.Verifying{
		Progress: func(part string, done, total int64) {
			v.line.draw("reading %s: %s of %s", part, number(done), number(total))
		},
		Damage: v.damage,
	})
}

func (v *verifying) damage(d journal.Damage) {
	v.line.clear()
	if _, err := fmt.Fprintf(v.out, "damaged %s: %s\n", d.Part, terminal.Line(d.Text)); v.failed == nil {
		v.failed = err
	}
}

// advice explains the damage, and what to do.
func advice(rep *journal.Report) string {
	text := "\nDamaged data is never served: whatever needs it fails, and the rest works.\n"
	if rep.By[journal.Content] > 0 {
		text += `
Content: these changes are shown without the object. tattler run continues.
At its next start, it reads a damaged last state from the cluster.
`
	}
	if rep.By[journal.Index] > 0 {
		text += `
Index: tattler log may omit these changes when it selects by kind, namespace,
manager, operation or time, and tattler show may not find them. tattler run
continues.
`
	}
	if rep.By[journal.Page] > 0 {
		text += `
Page: the file itself is damaged; check the disk. tattler run may be unable to
record. To continue, stop it, move the journal and the files beside it (-wal,
-shm) elsewhere, and start it again: it begins a new journal and records existing
objects as snapshots. tattler log --journal FILE still reads the old one where it
can.
`
	}
	return text
}

// progress is a line on a terminal that is redrawn.
type progress struct {
	w        io.Writer
	terminal bool
	drawn    string
}

// draw shows a text if it changed.
func (p *progress) draw(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); p.terminal && text != p.drawn {
		p.drawn = text
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	}
}

// clear erases the line.
func (p *progress) clear() {
	if p.drawn != "" {
		p.drawn = ""
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
