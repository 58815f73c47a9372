package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

var contract = []conformance.Sentence{
	{ID: "spec 1, a", Text: "One | two <three>.", Part: "Part 1"},
	{ID: "spec 1, b", Text: "Nobody shows this.", Part: "Part 1"},
	{ID: "spec 2, a", Text: "Inside.", Part: "Part 2", Unobservable: "a store; shown in internal/store."},
	{ID: "spec 2, b", Text: "Often.", Part: "Part 2"},
}

const rendered = `
Sentences: 4. Proved by tests: 3. Not observable, with where it is shown instead: 1.

## Part 1

| sentence | what it says | proved by |
|---|---|---|
| spec 1, a | One \| two &lt;three>. | ` + "`internal/api` TestA" + ` |
| spec 1, b | Nobody shows this. | **no test** |

## Part 2

| sentence | what it says | proved by |
|---|---|---|
| spec 2, a | Inside. | not observable: a store; shown in internal/store. |
| spec 2, b | Often. | ` + "`docs` TestA, `docs` TestB, `internal/api` TestA and 2 more" + ` |
`

func provedTests() map[string][]testName {
	return map[string][]testName{
		"spec 1, a": {{"roomsensor/internal/api", "TestA"}},
		"spec 2, b": {
			{"roomsensor/docs", "TestA"},
			{"roomsensor/docs", "TestB"},
			{"roomsensor/internal/api", "TestA"},
			{"roomsensor/internal/api", "TestB"},
			{"roomsensor/internal/api", "TestC"},
		},
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	require.Equal(t, introduction+rendered, render(contract, provedTests()))
}

func TestUncovered(t *testing.T) {
	t.Parallel()
	proved := provedTests()
	err := uncovered(contract, proved)
	require.ErrorContains(t, err, "conformance.Covers")
	require.ErrorContains(t, err, "\n  spec 1, b: Nobody shows this.")
	require.NotContains(t, err.Error(), "spec 1, a")
	require.NotContains(t, err.Error(), "spec 2, a")
	proved["spec 1, b"] = proved["spec 1, a"]
	require.NoError(t, uncovered(contract, proved))
}

func TestOutdated(t *testing.T) {
	t.Parallel()
	require.NoError(t, outdated(rendered, rendered))
	err := outdated("a\nb\nc\n", "a\nd\nc\n")
	require.ErrorContains(t, err, "go tool task conformance")
	require.ErrorContains(t, err, ":\n  + d\n  - b\n")
	require.Error(t, outdated("a\nb\n", "b\na\n"), "the order counts too")
}

// What is written is what is compared with.
func TestTableIsComparedWithWhatIsWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	proved := newProof()
	require.ErrorIs(t, proved.compare(), os.ErrNotExist)
	require.Error(t, proved.write())
	require.NoError(t, os.Mkdir(filepath.Dir(tablePath), 0o755))

	for _, s := range conformance.Sentences() {
		if s.Unobservable == "" {
			name := testName{"roomsensor/internal/api", "TestAll"}
			proved.claims[s.ID], proved.passed[name] = []testName{name}, true
		}
	}
	require.NoError(t, proved.write())
	require.NoError(t, proved.compare())

	forgotten := conformance.Sentences()[0].ID
	delete(proved.claims, forgotten)
	err := proved.compare()
	require.ErrorContains(t, err, "\n  "+forgotten+": ")
	require.ErrorContains(t, err, tablePath+" is not what the tests prove")
	require.ErrorContains(t, proved.write(), forgotten)
}
