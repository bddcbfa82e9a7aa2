package render

import (
	"fmt"
	"os"
	"testing"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/story"
)

func TestZZ(t *testing.T) {
	for _, s := range scenarios {
		p := newPlay(t, s.o)
		var all []change.Change
		p.stamp = func(c *change.Change) { all = append(all, *c) }
		s.play(p)
		o := s.o
		o.Stories = true
		f, _ := os.Create("/tmp/zz/" + s.name)
		o.Out, o.Location = f, morning.Location()
		text := New(o)
		e := story.New("c", nil)
		stories := map[string]story.Story{}
		for i := range all {
			in := story.Read(&all[i])
			in.Seq = int64(i + 1)
			all[i].Routine = in.Routine
			us, err := e.Apply(&in)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range us {
				stories[u.Story.ID] = u.Story
			}
		}
		heads := trees(stories)
		for i := range all {
			p.must(text.Change(all[i].At, all[i]))
			for _, h := range heads {
				if h.Seq == int64(i+1) {
					p.must(text.Story(h, p.now))
				}
			}
		}
		text.Flush(p.now)
		fmt.Fprintln(f, "")
		f.Close()
	}
}
