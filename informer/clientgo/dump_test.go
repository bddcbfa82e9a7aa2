package clientgo

import (
	"strings"
	"testing"
	"testing/synctest"
)

func TestDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, i, _ := filled(t, Options{Storage: Live}, 3)
		handle(t, i, &log{})
		synctest.Wait()
		var b strings.Builder
		if err := e.Dump(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"0 bytes of 16777216", "SharedIndexInformer *v1.Pod", "3 objects, ", "the program's client decodes them", "clientgo.log", "0 queued"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is not in\n%s", want, b.String())
			}
		}
	})
}
