package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
)

const (
	// stateBytes is about what the last state of an object takes in the file: docs/operations.md, Sizing.
	stateBytes = 2 << 10
	// leastFree is the space below which a disk counts as full: a daemon removes history only if 64 MiB are in use.
	leastFree = 64 << 20
	// leastSpan is the time that a journal must cover before its growth says anything.
	leastSpan = 10 * time.Minute
	// century is the history that is enough where no age limits it.
	century = 100 * 365 * 24 * time.Hour
	// reserveAfter is the time after its start by which a daemon has made the reserve: it does so with its first removal of old
	// changes, after a minute.
	reserveAfter = 2 * time.Minute
)

// journalFile examines the journal, and the disk that it is on.
func (x *examination) journalFile(ctx context.Context) {
	if x.journal == "" {
		return
	}
	x.place()
	ctx, cancel := x.host.within(ctx, checkJournal, "", journalTimeout)
	defer cancel()
	if _, err := os.Stat(x.journal); errors.Is(err, fs.ErrNotExist) {
		x.add(JournalFile, "health", OK, x.journal+" is made at the first start", "", "")
		x.expected()
		return
	}
	r, err := past.OpenReader(ctx, x.journal)
	if err != nil {
		x.add(JournalFile, "health", Error, "the journal cannot be read: "+err.Error(), "",
			"tattler journal verify says what is damaged. Restore a backup, or move the journal away to start a new one.")
		return
	}
	defer r.Close()
	size, err := r.Size(ctx)
	if err != nil {
		x.add(JournalFile, "health", Error, "the journal cannot be read: "+err.Error(), "", "tattler journal verify says what is damaged.")
		return
	}
	x.add(JournalFile, "health", OK, fmt.Sprintf("%s can be read, and takes %s", x.journal, volume(size.Used+size.Free+size.Log)),
		"Only its ends were read: tattler journal verify reads all of it.", "")
	if s := x.status; s != nil && s.Journal.Error != "" {
		x.add(JournalFile, "write", Error, "the daemon cannot write the journal: "+s.Journal.Error, "Nothing is recorded meanwhile.", "Make the disk larger, or journal.retain.size smaller.")
	}
	x.growth(&size)
}

// place examines the disk.
func (x *examination) place() {
	p, err := x.host.place(x.journal)
	if err != nil {
		x.add(JournalFile, "folder", Error, "the journal's folder cannot be read: "+err.Error(), "tattler run does not start.", "Make the folder, and give this user the right to it.")
		return
	}
	x.fileSystem(&p)
	x.writable(p.Dir)
	x.space(&p)
	missing := x.status != nil && p.Reserve < journal.DefaultReserve
	if missing && x.host.now().Sub(x.status.Started) < reserveAfter {
		x.add(JournalFile, "reserve", Note, "the daemon has not yet made the reserve for a full disk: it does so within a minute", "", "")
	} else if missing {
		x.add(JournalFile, "reserve", Warning, fmt.Sprintf("the reserve for a full disk is missing: %s-reserve", x.journal),
			"The daemon needs it to remove history once the disk is full.", "Make room on the disk; the daemon makes the reserve again.")
	} else if p.Reserve > 0 {
		x.add(JournalFile, "reserve", OK, volume(p.Reserve)+" are held in reserve for a full disk", "", "")
	}
}

func (x *examination) fileSystem(p *journal.Place) {
	const meaning = "A lock there may not keep out a daemon on another machine, and two daemons would damage the journal."
	const action = "Use a local disk or a block volume. If nothing starts a second daemon, set journal.network: true."
	switch {
	case p.FileSystem == "":
		x.add(JournalFile, "filesystem", OK, p.Dir+" is not on a network file system, as far as is known", "", "")
	case x.setup.Journal.Network:
		x.add(JournalFile, "filesystem", OK, fmt.Sprintf("%s is on %s, which journal.network allows", p.Dir, p.FileSystem), "", "")
	case p.Perhaps:
		x.add(JournalFile, "filesystem", Warning, fmt.Sprintf("%s is on %s, which may be a network file system", p.Dir, p.FileSystem), meaning, action)
	default:
		x.add(JournalFile, "filesystem", Error, fmt.Sprintf("%s is on %s, a network file system: tattler run does not start", p.Dir, p.FileSystem), meaning, action)
	}
}

// writable makes a file beside the journal, and removes it: rights, quotas and read-only volumes cannot be foreseen.
func (x *examination) writable(dir string) {
	f, err := os.CreateTemp(dir, ".tattler-doctor-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		x.add(JournalFile, "writable", Error, "no file can be made beside the journal: "+err.Error(), "tattler run does not start.", "Give this user the right to write there, or choose another place.")
		return
	}
	x.add(JournalFile, "writable", OK, dir+" can be written", "", "")
}

func (x *examination) space(p *journal.Place) {
	limit := int64(x.setup.Journal.Retain.Size)
	if !p.Known {
		x.add(JournalFile, "space", Note, "the free space of the disk is unknown on this system", "", "")
		return
	}
	free := volume(p.Free) + " are free"
	switch {
	case p.Free < leastFree:
		x.add(JournalFile, "space", Error, free+" on the journal's disk, which is too little", "Recording stops, or removes history to go on.", "Make the disk larger, or remove what else fills it.")
	case limit > 0 && p.Free+p.Used < limit+leastFree:
		x.add(JournalFile, "space", Warning, fmt.Sprintf("%s, but the journal may grow from %s to %s", free, volume(p.Used), volume(limit)),
			"The disk fills up before retention begins by size.", "Make the disk larger (three times journal.retain.size is safe), or retain.size smaller.")
	case limit > 0 && p.Free+p.Used < 3*limit:
		x.add(JournalFile, "space", Note, fmt.Sprintf("%s, for a journal of up to %s", free, volume(limit)), "Backups and tattler journal purge need more: three times journal.retain.size is safe.", "")
	case limit == 0:
		x.add(JournalFile, "space", Note, free+", and journal.retain.size sets no limit", "Only what is older than journal.retain.age is removed. On a full disk, recording stops.", "Set journal.retain.size.")
	default:
		x.add(JournalFile, "space", OK, fmt.Sprintf("%s, enough for a journal of %s", free, volume(limit)), "", "")
	}
}

// growth projects the size of the journal from what it holds.
func (x *examination) growth(size *journal.Size) {
	covers := size.Newest.Sub(size.Oldest)
	retain := x.setup.Journal.Retain
	changes := size.Last - size.First + 1
	states := max(0, x.objects) * stateBytes
	if covers < leastSpan || changes < 100 || x.objects < 0 {
		x.expected()
		return
	}
	perSecond := float64(changes) / covers.Seconds()
	bytes := float64(max(0, size.Used-states)) / covers.Seconds()
	text := fmt.Sprintf("it grows by %s a day: %d changes in %s, %.2g a second", volume(int64(bytes*86400)), changes, span(covers), perSecond)
	limit, age := int64(retain.Size), retain.Age
	if limit > 0 && bytes > 0 {
		seconds := float64(max(limit-states, limit/4)) / bytes
		if most := cmp.Or(age, century); seconds < most.Seconds() {
			holds := time.Duration(seconds * float64(time.Second))
			x.add(JournalFile, "growth", Note, text, fmt.Sprintf("At that rate, journal.retain.size (%s) holds %s of history.", volume(limit), span(holds)), "For a longer history, raise journal.retain.size.")
			return
		}
	}
	x.add(JournalFile, "growth", OK, text, "", "")
	x.crowded(states, limit)
}

// expected says what is known of the growth of a journal that holds too little: the last states.
func (x *examination) expected() {
	if x.objects < 0 {
		x.add(JournalFile, "growth", Note, "the expected growth is unknown: the objects were not counted", "", "")
		return
	}
	states := x.objects * stateBytes
	x.add(JournalFile, "growth", Note, fmt.Sprintf("the last states of %s take about %s", terminal.Count(int(x.objects), "object"), volume(states)),
		"How much the changes take is unknown until the journal has some: each takes 70 to 300 bytes.", "Ask again after a day.")
	x.crowded(states, int64(x.setup.Journal.Retain.Size))
}

// crowded warns of states that take half of the limit.
func (x *examination) crowded(states, limit int64) {
	if limit > 0 && states >= limit/2 {
		x.add(JournalFile, "crowded", Warning, fmt.Sprintf("the last states take about %s, half of journal.retain.size or more", volume(states)),
			"The history gets what they leave, and a quarter at least.", "Raise journal.retain.size, or watch less.")
	}
}
