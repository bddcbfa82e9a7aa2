package test

import (
	"os"
	"regexp"
	"runtime"
	"time"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/clientgo"
)

func init() {
	cache.SubstituteInformer = func(lw cache.ListerWatcher, example kruntime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		recordTest()
		informer := clientgo.NewSharedIndexInformer(lw, example, resync, indexers)
		if os.Getenv("TATTLER_UPSTREAM_FAULT") == "deaf" {
			return deafInformer{informer}
		}
		return informer
	}
}

var testName = regexp.MustCompile(`\.((?:Test|Fuzz)\w*)`)

// recordTest appends the name of the running test to the log.
func recordTest() {
	path := os.Getenv("TATTLER_UPSTREAM_LOG")
	if path == "" {
		return
	}
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		frame, more := frames.Next()
		if name := testName.FindStringSubmatch(frame.Function); name != nil {
			f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			defer f.Close()
			if _, err := f.WriteString(name[1] + "\n"); err != nil {
				panic(err)
			}
			return
		}
		if !more {
			return
		}
	}
}

// deafInformer is broken: it does not notify its handlers of updates.
type deafInformer struct{ cache.SharedIndexInformer }

func (i deafInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(deafHandler{h})
}

func (i deafInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(deafHandler{h}, period)
}

func (i deafInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(deafHandler{h}, o)
}

type deafHandler struct{ cache.ResourceEventHandler }

func (deafHandler) OnUpdate(_, _ any) {}
