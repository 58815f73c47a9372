package ledger

import "fmt"

// maxExamples is the number of findings that are described.
const maxExamples = 20

// Verdict counts the differences that a comparison found.
type Verdict struct {
	Lost       int `json:"lost"`       // confirmed and absent, or partially stored
	Duplicated int `json:"duplicated"` // stored or counted more than once
	Wrong      int `json:"wrong"`      // stored with a value that was not sent
	Phantom    int `json:"phantom"`    // stored and never sent, or refused
	// Examples describes the first findings.
	Examples []string `json:"examples,omitempty"`
}

// String returns the last line of a trial.
func (v *Verdict) String() string {
	return fmt.Sprintf("%d lost, %d duplicated, %d wrong, %d phantom", v.Lost, v.Duplicated, v.Wrong, v.Phantom)
}

// Clean reports whether no difference was found.
func (v *Verdict) Clean() bool { return v.Lost+v.Duplicated+v.Wrong+v.Phantom == 0 }

// Add adds the verdict of a comparison of other rows.
func (v *Verdict) Add(other Verdict) {
	v.Lost += other.Lost
	v.Duplicated += other.Duplicated
	v.Wrong += other.Wrong
	v.Phantom += other.Phantom
	v.addExamples(other)
}

// Confirm takes the maximum of each count, for another comparison of the same rows.
func (v *Verdict) Confirm(other Verdict) {
	v.Lost = max(v.Lost, other.Lost)
	v.Duplicated = max(v.Duplicated, other.Duplicated)
	v.Wrong = max(v.Wrong, other.Wrong)
	v.Phantom = max(v.Phantom, other.Phantom)
	v.addExamples(other)
}

func (v *Verdict) addExamples(other Verdict) {
	for _, example := range other.Examples {
		v.addExample("%s", example)
	}
}

func (v *Verdict) lost(n int, format string, args ...any) {
	v.Lost += n
	v.addExample("lost: "+format, args...)
}

func (v *Verdict) duplicated(n int, format string, args ...any) {
	v.Duplicated += n
	v.addExample("duplicated: "+format, args...)
}

func (v *Verdict) wrong(format string, args ...any) {
	v.Wrong++
	v.addExample("wrong: "+format, args...)
}

func (v *Verdict) phantom(format string, args ...any) {
	v.Phantom++
	v.addExample("phantom: "+format, args...)
}

func (v *Verdict) addExample(format string, args ...any) {
	if len(v.Examples) < maxExamples {
		v.Examples = append(v.Examples, fmt.Sprintf(format, args...))
	}
}
