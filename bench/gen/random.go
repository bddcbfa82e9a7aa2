package gen

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Salts separate the random sequences of different purposes.
const (
	saltApp    = 0x617070 << 32
	saltPod    = 0x706f64 << 32
	saltWidget = 0x776467 << 32
	saltOwner  = 0x6f776e << 32
	saltNode   = 0x6e6f64 << 32
)

// random is a random sequence that depends on a seed and a salt.
type random struct{ *rand.Rand }

func newRandom(seed, salt uint64) random { return random{rand.New(rand.NewPCG(seed, salt))} }

// chance is true in p of 100 draws.
func (r random) chance(p int) bool { return r.IntN(100) < p }

// between draws from [lo, hi].
func (r random) between(lo, hi int) int { return lo + r.IntN(hi-lo+1) }

// pick draws one of choices.
func pick[T any](r random, choices ...T) T { return choices[r.IntN(len(choices))] }

// letters is Kubernetes' alphabet for generated names: no vowels, no digits that look like letters.
const letters = "bcdfghjklmnpqrstvwxz2456789"

const (
	hexDigits = "0123456789abcdef"
	lowercase = "abcdefghijklmnopqrstuvwxyz0123456789"
)

func (r random) string(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// hex draws n hexadecimal digits, 16 at a time.
func (r random) hex(n int) string {
	b := make([]byte, n)
	for i := 0; i < n; {
		for x, j := r.Uint64(), 0; j < 16 && i < n; i, j = i+1, j+1 {
			b[i] = hexDigits[x&15]
			x >>= 4
		}
	}
	return string(b)
}

// uid draws a version 4 UUID.
func (r random) uid() string {
	b := []byte(r.hex(36))
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	b[14], b[19] = '4', "89ab"[r.IntN(4)]
	return string(b)
}

// ip draws an address in 10.0.0.0/8 whose other numbers have three digits each.
func (r random) ip() string {
	return fmt.Sprintf("10.%d.%d.%d", r.between(100, 255), r.between(100, 255), r.between(100, 255))
}

// Suffixes of five letters: stride spreads consecutive pods over all suffixes. back is its inverse
// modulo their number and finds a pod by its name.
const (
	suffixes = 27 * 27 * 27 * 27 * 27
	stride   = 7_368_787
	back     = 11_332_981
)

// suffix is the i-th suffix of five letters, i < suffixes.
func suffix(i int) string {
	b := make([]byte, 5)
	x := i * stride % suffixes
	for j := range b {
		b[j] = letters[x%27]
		x /= 27
	}
	return string(b)
}

// unsuffix is the inverse of suffix.
func unsuffix(s string) (int, bool) {
	x := 0
	for j := len(s) - 1; j >= 0; j-- {
		d := strings.IndexByte(letters, s[j])
		if d < 0 {
			return 0, false
		}
		x = x*27 + d
	}
	return x * back % suffixes, len(s) == 5
}
