package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkList cuts a list of 1,000 pods. The alternatives do less: encoding/json only checks the syntax, and
// a copy is the lower bound.
func BenchmarkList(b *testing.B) {
	for _, f := range []Format{Protobuf, JSON} {
		list := rawList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		pods := sampleObjects(b, f)
		for i := range 1000 {
			list.items = append(list.items, pods[i%len(pods)])
		}
		body := list.body(b, f, "v1", "PodList")
		b.Run(f.String(), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				l := NewList(f, bytes.NewReader(body))
				for {
					if _, err := l.Next(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run("copy of "+f.String(), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			buf := make([]byte, 64<<10)
			for b.Loop() {
				_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{bytes.NewReader(body)}, buf)
			}
		})
		if f == JSON {
			b.Run("encoding-json-valid", func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					if !json.Valid(body) {
						b.Fatal("invalid")
					}
				}
			})
		}
	}
}

// BenchmarkWatch cuts a stream of 1,000 events.
func BenchmarkWatch(b *testing.B) {
	for _, f := range []Format{Protobuf, JSON} {
		var body []byte
		pods := sampleObjects(b, f)
		for i := range 1000 {
			body = append(body, frame(b, f, Modified, "v1", "Pod", pods[i%len(pods)])...)
		}
		b.Run(f.String(), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				w := NewWatch(f, bytes.NewReader(body))
				for {
					if _, err := w.Next(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkRead measures the readers of one object, on the same pods.
func BenchmarkRead(b *testing.B) {
	for _, f := range []Format{Protobuf, JSON} {
		pods := sampleObjects(b, f)
		var sink int
		for name, read := range map[string]func(raw []byte) bool{
			"meta": func(raw []byte) bool {
				m, err := ReadMeta(f, raw)
				return err == nil && m.Name != ""
			},
			"labels": func(raw []byte) bool {
				return nil == ReadLabels(f, raw, func(_, value []byte) bool {
					sink += len(value)
					return true
				})
			},
			"fingerprint": func(raw []byte) bool {
				_, ok := Fingerprint(f, raw)
				return ok
			},
			"drop": func(raw []byte) bool { return len(DropManagedFields(f, raw)) < len(raw) },
			"metadata": func(raw []byte) bool {
				_, err := DecodeMetadata(f, raw)
				return err == nil
			},
		} {
			b.Run(f.String()+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if !read(pods[i%len(pods)]) {
						b.Fatal("unreadable")
					}
				}
			})
		}
	}
}
