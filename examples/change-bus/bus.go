package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// message is what is published of a change.
type message struct {
	Op              string                     `json:"op"`
	Kind            string                     `json:"kind"`
	Key             string                     `json:"key"`
	ResourceVersion string                     `json:"resourceVersion,omitempty"`
	Old             *unstructured.Unstructured `json:"old,omitempty"`
	New             *unstructured.Unstructured `json:"new,omitempty"`
}

const subjects = "changes.>"

// subject is changes.NAMESPACE.RESOURCE; the namespace is _ where there is none.
func subject(resource, namespace string) string {
	if namespace == "" {
		namespace = "_"
	}
	return "changes." + namespace + "." + resource
}

type bus struct {
	nc *nats.Conn
	js jetstream.JetStream
}

// connect connects to NATS, and makes the stream if there is none. From then on, the connection is made anew when it
// breaks. Nothing waits in its buffer meanwhile: what is not acknowledged is published again.
func connect(ctx context.Context, address, stream string) (*bus, error) {
	nc, err := nats.Connect(address, nats.Name("change-bus"), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w: start it there, or name another address with --nats", hosts(address), err)
	}
	js, err := jetstream.New(nc)
	if err == nil {
		if _, err = js.Stream(ctx, stream); errors.Is(err, jetstream.ErrStreamNotFound) {
			_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{subjects}})
		}
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("open the stream %s: %w", stream, err)
	}
	return &bus{nc, js}, nil
}

// hosts is an address without the credentials that it may have.
func hosts(address string) string {
	servers := strings.Split(address, ",")
	for i, s := range servers {
		if u, err := url.Parse(strings.TrimSpace(s)); err == nil && u.Host != "" {
			servers[i] = u.Host
		} else {
			servers[i] = s[strings.LastIndex(s, "@")+1:]
		}
	}
	return strings.Join(servers, ",")
}

// publish publishes until the stream has stored the message, or ctx ends. JetStream drops an id that it has seen within
// two minutes, unless the stream is configured otherwise.
func (b *bus) publish(ctx context.Context, subject, id string, m message) {
	failed := false
	for ctx.Err() == nil {
		err := b.try(ctx, subject, id, m)
		switch {
		case err == nil && failed:
			slog.Info("NATS stores again", "kind", m.Kind)
			return
		case err == nil:
			return
		case tooLarge(err) && (m.Old != nil || m.New != nil):
			slog.Warn("a change is too large, and is published without the objects", "kind", m.Kind, "key", m.Key, "err", err)
			m.Old, m.New = nil, nil
			continue
		case !failed:
			failed = true
			slog.Warn("NATS does not store, and is tried again", "kind", m.Kind, "key", m.Key, "err", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

func (b *bus) try(ctx context.Context, subject, id string, m message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if !b.nc.IsConnected() {
		return fmt.Errorf("the connection is lost: %w", cmp.Or(b.nc.LastError(), nats.ErrDisconnected))
	}
	_, err = b.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data}, jetstream.WithMsgID(id))
	return err
}

// tooLarge says that the server, or the stream, takes no message of that size.
func tooLarge(err error) bool {
	var answer *jetstream.APIError
	return errors.Is(err, nats.ErrMaxPayload) || errors.As(err, &answer) && answer.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum
}
