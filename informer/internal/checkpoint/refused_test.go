package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// framed is a file of the given records, each with the right CRC.
func framed(bodies ...[]byte) []byte {
	id := make([]byte, idSize)
	file := appendPreface(nil, id)
	seal := newSeal(id)
	for _, body := range bodies {
		sum := seal.crc(int64(len(file)), body)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(body)))
		file = binary.LittleEndian.AppendUint32(file, sum)
		file = append(file, body...)
	}
	return file
}

func live(objects int) []byte {
	c := commit{head: store.Head{Epoch: 1, Phase: store.Live, Version: "7"}, objects: objects}
	return c.append(nil)
}

// TestRefused loads files that no writer wrote, most with the right CRCs. Each must be refused without using
// more memory than its size justifies.
func TestRefused(t *testing.T) {
	key := store.Key{Namespace: "n", Name: "a"}
	head := (&header{stream: "pods"}).append(nil)
	v := (&compact.Packer{}).Pack(wire.JSON, "u", "1", []byte("{}"))
	payload, _ := v.Stored()
	put := appendPut(nil, key, v, payload, 0)
	huge := binary.AppendUvarint(nil, 2<<30)
	good := framed(head, put, live(1))
	if _, err := load(bytes.NewReader(good), int64(len(good))); err != nil {
		t.Fatalf("the file that the others are made from: %v", err)
	}
	for name, file := range map[string][]byte{
		"empty":                        {},
		"another file":                 []byte("#!/bin/sh\nexit 0\n# and so on, for longer than the preface\n"),
		"nothing but a preface":        framed(),
		"nothing but a header":         framed(head),
		"no commit":                    framed(head, put),
		"no header":                    framed(put, live(1)),
		"two headers":                  framed(head, head, put, live(1)),
		"an unknown kind":              framed(head, []byte{9}, put, live(1)),
		"kind zero":                    framed(head, []byte{0}, put, live(1)),
		"a wrong count":                framed(head, put, live(2)),
		"an unknown dictionary":        framed(head, appendPut(nil, key, v, payload, 1), live(1)),
		"an invalid dictionary":        framed(head, appendDict(nil, 1, []byte("none")), live(0)),
		"a dictionary of 2 GB":         framed(head, appendDict(nil, 1, append([]byte{1}, huge...)), live(0)),
		"dictionary 0":                 framed(head, appendDict(nil, 0, []byte("none")), live(0)),
		"an object of 2 GB":            framed(head, appendPut(nil, key, v, huge, 0), live(1)),
		"a name of 2 GB":               framed(head, append([]byte{kindDelete}, huge...), live(0)),
		"a number that never ends":     framed(head, append([]byte{kindDelete}, bytes.Repeat([]byte{0xff}, 20)...), live(0)),
		"an object of no format":       framed(head, edit(put, func(b []byte) { b[bytes.Index(b, []byte("\x01u\x011"))+4] = 0 }), live(1)),
		"a delete with trailing bytes": framed(head, append(appendDelete(nil, key), 0), live(0)),
		"a commit without its mark":    framed(head, put, []byte{kindCommit, 1, 2, 3}),
		"a commit of no phase":         framed(head, put, edit(live(1), func(b []byte) { b[len(commitMark)] = 0 })),
		"a commit that ends early":     framed(head, put, live(1)[:12]),
		"a record of 2 GB":             append(framed(head), 0, 0, 0, 0x80, 1, 2, 3, 4, 5),
		"a record of no bytes":         append(framed(head), make([]byte, 64)...),
		"another format version":       edit(good, func(b []byte) { b[len(magic)] = formatVersion + 1 }),
		"a damaged preface":            edit(good, func(b []byte) { b[len(magic)+5]++ }),
		"many commits of huge lengths": append(framed(head), bytes.Repeat([]byte("\xff\xff\xff\x03crc!"+commitMark), 100_000)...),
		"many commits with wrong CRCs": append(framed(head), bytes.Repeat([]byte("\x20\x00\x00\x00crc!"+commitMark), 100_000)...),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := load(bytes.NewReader(file), int64(len(file)))
			runtime.ReadMemStats(&after)
			var damage *DamagedError
			if !errors.As(err, &damage) {
				t.Errorf("got %v", err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
				t.Errorf("took %d bytes of memory for a file of %d", got, len(file))
			}
		})
	}
}

// TestCommitAcrossReads checks that a commit after damage is found wherever it lies in a read.
func TestCommitAcrossReads(t *testing.T) {
	head := (&header{stream: "pods"}).append(nil)
	later := commit{head: store.Head{Epoch: 1, Phase: store.Live, Version: "8"}, durable: 1 << 40}
	for shift := range 100 {
		file := framed(head, live(0))
		file = append(file, make([]byte, readAhead-50-len(file)+shift)...)
		body := later.append(nil)
		seal := newSeal(make([]byte, idSize))
		sum := seal.crc(int64(len(file)), body)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(body)))
		file = binary.LittleEndian.AppendUint32(file, sum)
		file = append(file, body...)
		file = append(file, make([]byte, 3000)...)
		var damage *DamagedError
		if _, err := load(bytes.NewReader(file), int64(len(file))); !errors.As(err, &damage) {
			t.Errorf("at %d bytes from the end of a read: %v", shift-50, err)
		}
	}
}
