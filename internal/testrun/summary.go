package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"roomsensor/internal/canary"
)

// event is a line of `go test -json`.
type event struct {
	Action  string `json:"Action"`  //nolint:tagliatelle // The names are those of `go test`.
	Package string `json:"Package"` //nolint:tagliatelle // As above.
	Test    string `json:"Test"`    //nolint:tagliatelle // As above.
	Output  string `json:"Output"`  //nolint:tagliatelle // As above.
	Key     string `json:"Key"`     //nolint:tagliatelle // As above; of the action attr.
	Value   string `json:"Value"`   //nolint:tagliatelle // As above.
}

// summary counts how tests ended, subtests included.
type summary struct {
	passed, failed int
	// skipped counts by reason.
	skipped map[string]int
	// proof is what they say of the contract.
	proof *proof
	// leaks are the tests that wrote what looks like the secret of a key: what they print, the service printed.
	leaks []string
}

func summarize(path string) (*summary, error) {
	f, err := os.Open(path) //nolint:gosec // A file of this program.
	if err != nil {
		return nil, fmt.Errorf("reading the results: %w", err)
	}
	s, err := count(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("reading the results: %w", err)
	}
	return s, nil
}

// message is a line that a test logged; the one before it ends is the reason of a skip.
var message = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n?$`)

func count(events io.Reader) (*summary, error) {
	s := &summary{skipped: map[string]int{}, proof: newProof()}
	last := map[string]string{} // What each test logged last.
	for decoder := json.NewDecoder(events); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return s, nil
		} else if err != nil {
			return nil, err //nolint:wrapcheck // summarize wraps it.
		}
		s.proof.take(e)
		name := e.Package + " " + e.Test
		if len(canary.Keys([]byte(e.Output))) > 0 && !slices.Contains(s.leaks, name) {
			s.leaks = append(s.leaks, name)
		}
		switch match := message.FindStringSubmatch(e.Output); {
		case e.Test == "":
		case match != nil:
			last[name] = match[1]
		case e.Action == "pass":
			s.passed++
		case e.Action == "fail":
			s.failed++
		case e.Action == "skip":
			s.skip(last[name])
		}
	}
}

func (s *summary) skip(reason string) {
	if reason == "" {
		reason = "(without a reason)"
	}
	s.skipped[reason]++
}

// secretive is an error where a test wrote a secret (decision 26).
func (s *summary) secretive() error {
	if len(s.leaks) == 0 {
		return nil
	}
	tests := strings.Join(s.leaks, "\n  ")
	return fmt.Errorf("what looks like the secret of a key is in the output of these tests:\n  %s", tests)
}

// String ends with a line for every reason.
func (s *summary) String() string {
	total := 0
	for _, n := range s.skipped {
		total += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tests: %d passed, %d failed, %d skipped\n", s.passed, s.failed, total)
	for _, reason := range slices.Sorted(maps.Keys(s.skipped)) {
		fmt.Fprintf(&b, "  %d skipped: %s\n", s.skipped[reason], reason)
	}
	return b.String()
}
