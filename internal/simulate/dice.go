package simulate

import "math/rand/v2"

// The streams of random numbers that one seed is split into, so that a change
// of one thing does not move all others.
const (
	streamRoom = iota
	streamUnit
	streamWeather
	streamPeople
	streamNoise
	streamDelivery
)

// dice is a random generator that can be set to a place of its own for every
// day of every device without allocating.
type dice struct {
	*rand.Rand
	pcg rand.PCG
}

func newDice(parts ...uint64) *dice {
	d := &dice{}
	d.Rand = rand.New(&d.pcg) //nolint:gosec // Nothing here is a secret.
	d.reset(parts...)
	return d
}

// reset starts the sequence that belongs to the parts.
func (d *dice) reset(parts ...uint64) {
	var a, b uint64
	for _, part := range parts {
		a = mix(a ^ part)
		b = mix(b + a)
	}
	d.pcg.Seed(a, b)
}

// mix spreads neighbouring numbers over all 64 bits (the last step of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chance is true with a probability of 0 to 1.
func (d *dice) chance(p float64) bool { return d.Float64() < p }

// between draws evenly from [least, most).
func (d *dice) between(least, most float64) float64 { return least + (most-least)*d.Float64() }

// around draws from a bell curve that is cut off at three deviations.
func (d *dice) around(mean, deviation float64) float64 {
	return mean + deviation*max(-3, min(3, d.NormFloat64()))
}
