package clientgo

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Dump writes the engine's Stats as text, for people.
func (e *Engine) Dump(w io.Writer) error {
	st := e.Stats()
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "decoded because read or changed:\t%d bytes of %d\n", st.Decoded, orDefault(e.opts.Hot, defaultHot))
	fmt.Fprintf(t, "decoded because read often:\t%d bytes of %d\n", st.Kept, orDefault(e.opts.Kept, defaultKept))
	for _, i := range st.Informers {
		how := "not asked for yet"
		switch {
		case i.Raw:
			how = "cut out of what the server sends"
		case i.Decoded != "":
			how = i.Decoded
		}
		fmt.Fprintf(t, "%s\t%d objects, %d kept decoded, %d bytes, %s", i.Name, i.Objects, i.Kept, i.Bytes, how)
		if i.Undecodable > 0 {
			fmt.Fprintf(t, ", %d not decoded", i.Undecodable)
		}
		fmt.Fprintln(t)
		for _, h := range i.Handlers {
			fmt.Fprintf(t, "  %s\t%d queued, %d bytes, %d folded\n", h.Name, h.Queued, h.Bytes, h.Folded)
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write dump: %w", err)
	}
	return nil
}
