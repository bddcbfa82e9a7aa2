package log

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/render/html"
	"github.com/tattler-dev/tattler/internal/story"
)

// page keeps the lines of a page until the end.
type page struct {
	entries []entry
	cut     int
	story   *story.Tree // that the next line is about
}

func (p *page) add(e entry) {
	if len(p.entries) == 2*html.MaxEntries {
		p.entries = append(p.entries[:0], p.entries[html.MaxEntries:]...)
		p.cut += html.MaxEntries
	}
	p.entries = append(p.entries, e)
}

// asPage makes a folding collect the lines of a page.
func (f *folding) asPage(ro *render.Options) {
	f.page = &page{}
	ro.Namespaces, ro.Terminal = true, true
	ro.Each = func(l render.Line) { f.page.add(entry{Line: l, story: f.page.story}) }
}

// writePage writes the page to the file that the user names. A file of that name is replaced once the page is complete.
func (t *lister) writePage(ctx context.Context, p *page, notes []string) (err error) {
	if t.o.HTML == "-" {
		out := bufio.NewWriter(t.o.IO.Out)
		if err := t.page(ctx, out, p, notes); err != nil {
			return err
		}
		return out.Flush()
	}
	if err := replaceable(t.o.HTML); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(t.o.HTML), "."+filepath.Base(t.o.HTML)+".*")
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	out := bufio.NewWriter(f)
	err = errors.Join(t.page(ctx, out, p, notes), out.Flush(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), t.o.HTML)
	}
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	_, err = fmt.Fprintf(t.o.IO.Err, "wrote %s\n", terminal.Line(t.o.HTML))
	return err
}

// pageStart is how each page begins.
const pageStart = "<!doctype html>"

// replaceable returns an error if a page must not replace what is at path: a folder, or a file that is not a page, such as
// the journal itself.
func replaceable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case info.Size() == 0:
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	start := make([]byte, len(pageStart))
	if n, err := io.ReadFull(f, start); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	} else if !strings.EqualFold(string(start[:n]), pageStart) {
		return fmt.Errorf("%s exists and is not an HTML page: choose another name, or remove it first", path)
	}
	return nil
}

func (t *lister) page(ctx context.Context, w io.Writer, p *page, notes []string) error {
	if n := len(p.entries) - html.MaxEntries; n > 0 {
		p.entries = p.entries[n:]
		p.cut += n
	}
	if p.cut > 0 {
		notes = append(notes, fmt.Sprintf("the page has the last %d entries; %d earlier ones are left out", html.MaxEntries, p.cut))
	}
	out, err := html.New(w, html.Page{
		Title: "What changed", Cluster: t.journal.Cluster(), Selection: cmp.Or(t.o.Command, "tattler log"),
		Since: t.Query.Since, Until: t.Query.Until, Written: t.o.Now(), Notes: notes, Noise: t.o.Noise, Version: buildinfo.Version(),
	})
	if err != nil {
		return err
	}
	for _, e := range p.entries {
		seqs := e.Changes
		if e.story != nil {
			if seqs, err = t.journal.Covered(ctx, e.story); err != nil {
				return err
			}
		}
		changes, more, err := t.covered(ctx, seqs)
		if err != nil {
			return err
		}
		if err := out.Entry(html.Entry{Line: e.Line, Changes: changes, More: more}); err != nil {
			return err
		}
	}
	return out.Close()
}

// covered reads the newest of the changes with the given numbers. A damaged one is left out: the list has a notice about it.
func (t *lister) covered(ctx context.Context, seqs []int64) (all []change.Change, more int, err error) {
	more = max(len(seqs)-html.MaxChanges, 0)
	err = t.journal.Each(ctx, seqs[more:], func(_ *journal.Entry, c change.Change, damage error) error {
		if damage == nil {
			all = append(all, c)
		}
		return nil
	})
	return all, more, err
}

// command is a command line as the user wrote it, without the flags that say where the journal and the page are.
func command(cmd *cobra.Command, args []string) string {
	words := append([]string{cmd.CommandPath()}, args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "journal", "config", "kubeconfig", "html":
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			switch {
			case f.Value.Type() == "bool" && v == "true":
				words = append(words, "--"+f.Name)
			default:
				words = append(words, "--"+f.Name, v)
			}
		}
	})
	for i, w := range words {
		if strings.ContainsAny(w, " \t\n'\"$&|<>()*?[]{};!#~`\\") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
