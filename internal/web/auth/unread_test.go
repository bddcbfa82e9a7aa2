package auth

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestUnread: clients that never read, or a byte at a time, do not hold their requests longer than the deadline, take no memory for
// what they do not read, and others are served meanwhile.
func TestUnread(t *testing.T) {
	const clients, size = 10, 64 << 20
	a := mustNew(t, Options{})
	a.timeouts.write = 300 * time.Millisecond
	entered, left := make(chan struct{}, 4*clients), make(chan error, 4*clients)
	chunk := make([]byte, 1<<20)
	address := served(t, a, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil { // only the others' deadline is short
				t.Error(err)
			}
			_, _ = io.WriteString(w, "hello")
			return
		}
		to := io.Writer(w)
		if r.URL.Path == "/stream" {
			s, err := NewStream(w, r)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			to = s
		}
		entered <- struct{}{}
		var err error
		for n := 0; n < size && err == nil; n += len(chunk) {
			_, err = to.Write(chunk)
		}
		left <- err
	}))
	dial := func(path string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		err = errors.Join(c.(*net.TCPConn).SetReadBuffer(4096), c.SetDeadline(time.Now().Add(20*time.Second)))
		if err == nil {
			_, err = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+address+"\r\n\r\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range clients {
		dial("/page")
		dial("/stream")
	}
	slow := dial("/page")
	go func() {
		b := make([]byte, 1)
		for {
			<-time.After(10 * time.Millisecond)
			if _, err := slow.Read(b); err != nil {
				return
			}
		}
	}()
	for range 2*clients + 1 {
		<-entered
	}
	if code, text := fetch(t, http.DefaultClient, "http://"+address+"/"); code != http.StatusOK || text != "hello" {
		t.Errorf("meanwhile: %d %s", code, text)
	}
	http.DefaultClient.CloseIdleConnections()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if memory.HeapAlloc > clients*size/4 {
		t.Errorf("%d MiB are in use", memory.HeapAlloc>>20)
	}
	for range 2*clients + 1 {
		select {
		case err := <-left:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("an answer ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("an answer that its client does not read does not end")
		}
	}
}
