package simulate

import (
	"encoding/binary"
	"math/rand/v2"
)

// The independent streams of random numbers of one seed, so that a change of one does not change the others.
const (
	streamRoom uint64 = iota
	streamUnit
	streamWeather
	streamPeople
	streamNoise
	streamDelivery
)

// rng is a random number generator.
type rng struct{ *rand.Rand }

// newRNG returns a generator of a stream. The seed is that of the fleet; up to two numbers select a part of the stream.
func newRNG(stream, seed uint64, part ...int64) rng {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], stream)
	binary.LittleEndian.PutUint64(key[8:], seed)
	for i, n := range part {
		binary.LittleEndian.PutUint64(key[16+8*i:], uint64(n)) //nolint:gosec // A seed may wrap.
	}
	return rng{rand.New(rand.NewChaCha8(key))} //nolint:gosec // It draws no secrets.
}

// chance returns true with a probability from 0 to 1.
func (d rng) chance(p float64) bool { return d.Float64() < p }

// between draws from a uniform distribution over [least, most).
func (d rng) between(least, most float64) float64 { return least + (most-least)*d.Float64() }

// around draws from a normal distribution, truncated at three standard deviations.
func (d rng) around(mean, deviation float64) float64 {
	return mean + deviation*max(-3, min(3, d.NormFloat64()))
}
