package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/kinds"
)

type subscription = *informer.Subscription[*unstructured.Unstructured]

// find looks the kinds up by name.
func find(ctx context.Context, cluster *informer.Cluster, names []string) (map[kinds.Kind]subscription, error) {
	served, err := kinds.List(ctx, cluster)
	switch {
	case served == nil:
		return nil, err
	case err != nil: // an aggregated API may be away
		slog.Warn("some API groups cannot be read", "error", err)
	}
	found := map[kinds.Kind]subscription{}
	for _, name := range names {
		i := slices.IndexFunc(served, func(k kinds.Kind) bool { return k.String() == name })
		if i < 0 {
			return nil, program.Usage("--kinds: the API server has no kind %q; name kinds as kubectl api-resources -o name does, such as --kinds pods,deployments.apps", name)
		}
		found[served[i]] = nil
	}
	return found, nil
}

// connect connects to NATS, and creates the stream unless it exists. A connection that breaks is made again.
func connect(ctx context.Context, address string) (jetstream.JetStream, error) {
	conn, err := nats.Connect(address, nats.MaxReconnects(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // else we have closed it
				slog.Warn("disconnected from NATS", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { slog.Info("connected to NATS again") }))
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w: start it, or give its address with --nats", err)
	}
	bus, err := jetstream.New(conn)
	if err == nil {
		_, err = bus.CreateStream(ctx, jetstream.StreamConfig{Name: "CHANGES", Subjects: []string{"changes.>"}})
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		conn.Close()
		return nil, fmt.Errorf("create the stream CHANGES: %w", err)
	}
	return bus, nil
}

// message is what is published about a change.
type message struct {
	Op              string                     `json:"op"`
	Kind            string                     `json:"kind"`
	Key             string                     `json:"key"`
	ResourceVersion string                     `json:"resourceVersion,omitempty"`
	Old             *unstructured.Unstructured `json:"old,omitempty"`
	New             *unstructured.Unstructured `json:"new,omitempty"`
}

// publish publishes the changes of a kind one by one, so that they stay in order.
func publish(ctx context.Context, bus jetstream.JetStream, kind kinds.Kind, changes subscription) {
	for change, err := range changes.All(ctx) {
		if err != nil { // drained, or out of time
			return
		}
		if change.Op == informer.Gapped {
			slog.Warn("some versions were missed", "kind", kind, "reason", change.Gap.Reason, "since", change.Gap.Since)
			continue
		}
		m := message{Op: change.Op.String(), Kind: kind.String(), Key: change.Key.String(), ResourceVersion: change.ResourceVersion()}
		var err1, err2 error
		m.Old, err1 = change.Old()
		m.New, err2 = change.New()
		if err := errors.Join(err1, err2); err != nil {
			slog.Error("an object cannot be read, and is left out", "kind", kind, "key", m.Key, "error", err)
		}
		// The ID is the same however often a change is published, so the stream can drop duplicates.
		id := fmt.Sprintf("%s.%s", change.UID, cmp.Or(m.ResourceVersion, "deleted"))
		store(ctx, bus, fmt.Sprintf("changes.%s.%s", cmp.Or(change.Key.Namespace, "_"), kind.Resource.Resource), id, m)
	}
}

// store publishes a message until the stream has stored it, or ctx ends.
func store(ctx context.Context, bus jetstream.JetStream, subject, id string, m message) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		data, err := json.Marshal(m)
		if err == nil {
			_, err = bus.Publish(ctx, subject, data, jetstream.WithMsgID(id))
		}
		switch {
		case err == nil:
			return
		case errors.Is(err, nats.ErrMaxPayload) && (m.Old != nil || m.New != nil):
			slog.Warn("too large for NATS, and published without the objects", "kind", m.Kind, "key", m.Key)
			m.Old, m.New = nil, nil
			continue
		case attempt == 0:
			slog.Warn("not stored; trying again until it is", "kind", m.Kind, "key", m.Key, "error", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}
