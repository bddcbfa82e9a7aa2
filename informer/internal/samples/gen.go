package samples

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Item is an encoded object, as a list or watch delivers it.
type Item struct {
	Format  wire.Format
	Key     string // namespace/name
	UID, RV string
	Raw     []byte
}

// Object has the methods common to the API's types.
type Object interface {
	metav1.Object
	Marshal() ([]byte, error)
}

// Encode encodes an object as the API server does.
func Encode(f wire.Format, o Object) Item {
	it := Item{Format: f, Key: o.GetNamespace() + "/" + o.GetName(), UID: string(o.GetUID()), RV: o.GetResourceVersion()}
	var err error
	if f == wire.Protobuf {
		it.Raw, err = o.Marshal()
	} else {
		it.Raw, err = json.Marshal(o)
	}
	if err != nil {
		panic(err)
	}
	return it
}

// Gen makes objects like those of a busy cluster.
type Gen struct {
	*rand.Rand
	rv int
}

// New returns a generator that makes the same objects for the same seed.
func New(seed uint64) *Gen { return &Gen{Rand: rand.New(rand.NewPCG(seed, 7)), rv: 48_213_377} }

var words = strings.Fields(`api auth batch billing cache cart catalog checkout client cluster config consumer core
	customer data dispatch edge email event export feed fraud gateway geo graph help identity import index ingest
	inventory invoice job kafka ledger limit loader logger mail match media message metric monitor notify order
	partner pay pipeline planner portal price profile proxy queue rate recommend refund relay report review risk
	router rules scan schedule score search secret server session ship sink stock store stream sync tax token
	tracker trade upload user vault video wallet web worker zone`)

func (g *Gen) word() string               { return words[g.IntN(len(words))] }
func (g *Gen) between(lo, hi int) int     { return lo + g.IntN(hi-lo+1) }
func (g *Gen) chance(percent int) bool    { return g.IntN(100) < percent }
func (g *Gen) name(n int) string          { return strings.Join(g.some(n), "-") }
func (g *Gen) upper(n int) string         { return strings.ToUpper(strings.Join(g.some(n), "_")) }
func (g *Gen) pick(from ...string) string { return from[g.IntN(len(from))] }
func (g *Gen) ip() string                 { return fmt.Sprintf("10.%d.%d.%d", g.IntN(256), g.IntN(256), g.IntN(256)) }
func (g *Gen) nextRV() string             { g.rv += g.between(1, 900); return fmt.Sprint(g.rv) }
func (g *Gen) time() metav1.Time {
	return metav1.NewTime(time.Unix(1_790_000_000+g.Int64N(3_000_000), 0).UTC())
}
func (g *Gen) quantity(s string) resource.Quantity { return resource.MustParse(s) }

func (g *Gen) some(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = g.word()
	}
	return out
}

func (g *Gen) hex(n int) string {
	b := make([]byte, n/2)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return hex.EncodeToString(b)
}

func (g *Gen) uid() types.UID {
	h := g.hex(32)
	return types.UID(h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:])
}

// Suffix returns a random suffix as generateName appends it.
func (g *Gen) Suffix(n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[g.IntN(len(letters))]
	}
	return string(b)
}
