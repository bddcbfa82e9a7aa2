package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/daemon"
)

// configuration checks what needs no server: the file, which was read before, the key, the web page.
func (x *examination) configuration() {
	title := "the flags are valid"
	if file := x.o.Setup.File; file != "" {
		title = file + " is valid"
	}
	x.add(Configuration, "file", OK, title, "", "")
	key, err := x.setup.KeyFile()
	if err == nil {
		_, err = daemon.ReadKey(key)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.add(Configuration, "key", OK, "the redaction key "+key+" is made at the first start", "", "")
	case err != nil:
		x.add(Configuration, "key", Error, "the redaction key cannot be used: "+err.Error(),
			"tattler run does not start, because hidden values would get other hashes.", "Restore the key, or correct the file's mode.")
	default:
		x.add(Configuration, "key", OK, "the redaction key "+key+" can be read", "", "")
	}
	if x.setup.Web.Address != "" {
		if err := setup.CheckWeb(x.setup.Web); err != nil {
			x.add(Configuration, "web", Error, "the web page cannot be protected: "+err.Error(), "tattler run does not start.", "Correct web: in the configuration.")
		} else {
			x.add(Configuration, "web", OK, "the web page can be served at "+x.setup.Web.Address, "", "")
		}
	}
	if x.journal, err = x.setup.JournalFile(x.parts[0].Cluster); err != nil {
		x.journal = ""
		x.add(JournalFile, "path", Error, err.Error(), "tattler run does not start.", "Set journal.path in the configuration, or use --journal FILE.")
	}
}

// askDaemon asks the daemon that records into the journal for its state.
func (x *examination) askDaemon(ctx context.Context) {
	if x.journal == "" {
		return
	}
	ctx, cancel := x.host.within(ctx, checkDaemon, "", daemonTimeout)
	defer cancel()
	s, err := (&control.Client{Journal: x.journal}).Status(ctx)
	var none *control.NoDaemonError
	switch {
	case err == nil:
		x.status = &s
	case !errors.As(err, &none):
		x.add(Daemon, "answer", Error, "the daemon does not report its state: "+err.Error(), "", "If that lasts, restart it, and keep its log.")
	}
}

// daemon reports what the running daemon lacks.
func (x *examination) daemon() {
	s := x.status
	if s == nil {
		return
	}
	x.add(Daemon, "running", OK, fmt.Sprintf("tattler %s records %s, as process %d", s.Version, recorded(s), s.PID), "", "")
	away := func(cluster, server, why string) {
		x.of(cluster, Daemon, "away", Error, "the daemon cannot reach "+server+": "+why, "Changes are recorded once it answers, as far as it still has them.", "Check the network of the daemon, and its credentials.")
	}
	if s.Away != "" && len(s.Clusters) == 0 {
		away("", "the API server", s.Away)
	}
	for i := range s.Clusters {
		if c := &s.Clusters[i]; c.Away != "" {
			away(c.Name, c.Name, c.Away)
		}
	}
	for i := range s.MissingRights {
		l := &s.MissingRights[i]
		level, meaning := Error, "The daemon goes on by itself once the right is granted."
		if l.Without != "" {
			level, meaning = Warning, "Without it, "+l.Without+"."
		}
		x.of(l.Cluster, Daemon, "rights", level, "the daemon lacks a right: "+l.Text(), meaning, grant(l.Cluster))
	}
	notLive := map[control.StreamState][]string{}
	for _, st := range s.Streams {
		if st.State == control.Waiting || st.State == control.Forbidden {
			name := st.Resource
			if st.Cluster != "" {
				name = st.Cluster + ": " + name
			}
			notLive[st.State] = append(notLive[st.State], name)
		}
	}
	for _, state := range []control.StreamState{control.Forbidden, control.Waiting} {
		if names := notLive[state]; len(names) > 0 {
			x.add(Daemon, "streams", Error, fmt.Sprintf("%s not live (%s): %s", streams(len(names)), state, listed(names)),
				"Their changes are not recorded now.", "tattler status has the server's answers.")
		}
	}
	for _, k := range s.Sinks {
		if k.Dead > 0 {
			x.add(Daemon, "dead", Warning, fmt.Sprintf("sink %s has %s", k.Name, terminal.Count(int(k.Dead), "dead letter")),
				"Its receiver refused these changes.", "tattler sinks dead "+k.Name+" shows them, and why.")
		}
		if k.Lost > 0 {
			x.add(Daemon, "lost", Warning, fmt.Sprintf("sink %s has lost %s", k.Name, terminal.Count(int(k.Lost), "change")),
				"Retention removed them before they were delivered.", "Raise journal.retain, or see why the sink lags.")
		}
	}
}

// recorded names the clusters that a daemon records.
func recorded(s *control.Status) string {
	if len(s.Clusters) == 0 {
		return s.Cluster
	}
	var names []string
	for i := range s.Clusters {
		names = append(names, s.Clusters[i].Name)
	}
	return listed(names)
}

func streams(n int) string {
	if n == 1 {
		return "1 stream is"
	}
	return fmt.Sprintf("%d streams are", n)
}
