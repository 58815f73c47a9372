package ledger

import "fmt"

// mostExamples is how many findings are told in words.
const mostExamples = 20

// Verdict is what a comparison found.
type Verdict struct {
	Lost       int `json:"lost"`       // confirmed and absent, or half there
	Duplicated int `json:"duplicated"` // there, or counted, more than once
	Wrong      int `json:"wrong"`      // there with another value than was sent
	Phantom    int `json:"phantom"`    // there and never sent, or refused
	// Examples are the first findings in words.
	Examples []string `json:"examples,omitempty"`
}

// String is the line that a trial ends with.
func (v *Verdict) String() string {
	return fmt.Sprintf("%d lost, %d duplicated, %d wrong, %d phantom", v.Lost, v.Duplicated, v.Wrong, v.Phantom)
}

// Clean reports whether nothing was found.
func (v *Verdict) Clean() bool { return v.Lost+v.Duplicated+v.Wrong+v.Phantom == 0 }

// Add takes over what a comparison of other things found.
func (v *Verdict) Add(other Verdict) {
	v.Lost += other.Lost
	v.Duplicated += other.Duplicated
	v.Wrong += other.Wrong
	v.Phantom += other.Phantom
	v.quote(other)
}

// Confirm takes over what another comparison of the same things found: the greater numbers.
func (v *Verdict) Confirm(other Verdict) {
	v.Lost = max(v.Lost, other.Lost)
	v.Duplicated = max(v.Duplicated, other.Duplicated)
	v.Wrong = max(v.Wrong, other.Wrong)
	v.Phantom = max(v.Phantom, other.Phantom)
	v.quote(other)
}

func (v *Verdict) quote(other Verdict) {
	for _, example := range other.Examples {
		v.tell("%s", example)
	}
}

func (v *Verdict) lost(n int, format string, args ...any) {
	v.Lost += n
	v.tell("lost: "+format, args...)
}

func (v *Verdict) duplicated(n int, format string, args ...any) {
	v.Duplicated += n
	v.tell("duplicated: "+format, args...)
}

func (v *Verdict) wrong(format string, args ...any) {
	v.Wrong++
	v.tell("wrong: "+format, args...)
}

func (v *Verdict) phantom(format string, args ...any) {
	v.Phantom++
	v.tell("phantom: "+format, args...)
}

func (v *Verdict) tell(format string, args ...any) {
	if len(v.Examples) < mostExamples {
		v.Examples = append(v.Examples, fmt.Sprintf(format, args...))
	}
}
