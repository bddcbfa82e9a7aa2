package change

import (
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/managers"
)

// CrossedBy sets the time and the manager of a change with which an object entered or left a selection, after Build: those
// of the write that did it, by the managed fields of now, the object after that write. asked are the fields that the
// selection compares. Of several, the newest write did it; if it is unknown, such as of a label that was removed, the
// manager is Unknown, and the time the one at which the change was seen.
func (c *Change) CrossedBy(now map[string]any, asked []diff.Path) {
	c.Manager, c.Time = managers.Unknown, c.At
	if c.Op == event.Entered {
		if made := created(now, c.Since); !c.Since.IsZero() && made.Before(c.At) {
			c.Since = later(c.Since, made)
		}
	}
	entries := managers.Parse(now)
	times := TimesOf(entries.List())
	var newest time.Time
	for _, p := range asked {
		value := valueAt(now, p)
		if value == nil {
			continue
		}
		manager, subresource := entries.Owner(p, value)
		who := managers.Display(manager, subresource)
		at := times.Of(manager, subresource)
		switch {
		case !c.canBe(at):
			if len(asked) == 1 { // nobody else can have done it, but the server did not note when
				c.Manager = who
			}
		case at.After(newest):
			newest, c.Manager, c.Time = at, who, at
		case at.Equal(newest) && who != c.Manager:
			c.Manager = managers.Unknown
		}
	}
}

// valueAt returns the value at a path of fields; nil if there is none.
func valueAt(obj map[string]any, p diff.Path) any {
	var v any = obj
	for _, e := range p {
		m, _ := v.(map[string]any)
		v = m[e.Name]
	}
	return v
}
