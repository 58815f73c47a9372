package simulate

import "math/rand/v2"

// The independent streams of random numbers of one seed, so that a change of one does not change the others.
const (
	streamRoom = iota
	streamUnit
	streamWeather
	streamPeople
	streamNoise
	streamDelivery
)

// rng is a random number generator.
type rng struct{ *rand.Rand }

// newRNG returns a generator whose seed is all the parts.
func newRNG(parts ...uint64) rng {
	var a, b uint64
	for _, part := range parts {
		a = mix(a ^ part)
		b = mix(b + a)
	}
	return rng{rand.New(rand.NewPCG(a, b))} //nolint:gosec // It draws no secrets.
}

// mix hashes a number, so that similar seeds give different sequences (the last step of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chance returns true with a probability from 0 to 1.
func (d rng) chance(p float64) bool { return d.Float64() < p }

// between draws from a uniform distribution over [least, most).
func (d rng) between(least, most float64) float64 { return least + (most-least)*d.Float64() }

// around draws from a normal distribution, truncated at three standard deviations.
func (d rng) around(mean, deviation float64) float64 {
	return mean + deviation*max(-3, min(3, d.NormFloat64()))
}
