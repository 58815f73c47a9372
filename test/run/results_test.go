package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

// events are lines of `go test -json` of two packages that run at the same time.
const events = `
{"Action":"start","Package":"roomsensor/test/a"}
{"Action":"run","Package":"roomsensor/test/a","Test":"TestOne"}
{"Action":"output","Package":"roomsensor/test/a","Test":"TestOne","Output":"=== ATTR  TestOne contract A\n"}
{"Action":"attr","Package":"roomsensor/test/a","Test":"TestOne","Key":"contract","Value":"A"}
{"Action":"attr","Package":"roomsensor/test/b","Test":"TestOne/sub/sub","Key":"contract","Value":"A"}
{"Action":"attr","Package":"roomsensor/test/b","Test":"TestTwo/other","Key":"contract","Value":"A"}
{"Action":"attr","Package":"roomsensor/test/b","Test":"TestMachine","Key":"contract","Value":"B"}
{"Action":"attr","Package":"roomsensor/test/b","Test":"TestMachine/docker","Key":"machine","Value":"Docker"}
{"Action":"attr","Package":"roomsensor/test/b","Test":"TestOne","Key":"color","Value":"B"}
{"Action":"output","Package":"roomsensor/test/a","Test":"TestSkip","Output":"    one_test.go:1: some words\n"}
{"Action":"output","Package":"roomsensor/test/b","Test":"TestOne","Output":"    b_test.go:9: something else\n"}
{"Action":"output","Package":"roomsensor/test/a","Test":"TestSkip","Output":"    one_test.go:2: needs the Community edition\n"}
{"Action":"output","Package":"roomsensor/test/a","Test":"TestSkip","Output":"--- SKIP: TestSkip (0.00s)\n"}
{"Action":"skip","Package":"roomsensor/test/a","Test":"TestSkip","Elapsed":0}
{"Action":"pass","Package":"roomsensor/test/a","Test":"TestOne","Elapsed":0}
{"Action":"output","Package":"roomsensor/test/b","Test":"TestTwo/sub","Output":"    b_test.go:9: needs the Community edition\n"}
{"Action":"skip","Package":"roomsensor/test/b","Test":"TestTwo/sub"}
{"Action":"pass","Package":"roomsensor/test/b","Test":"TestTwo","Elapsed":2.25}
{"Action":"pass","Package":"roomsensor/test/b","Test":"TestTwo/other","Elapsed":3}
{"Action":"fail","Package":"roomsensor/test/b","Test":"TestThree","Elapsed":1.5}
{"Action":"output","Package":"roomsensor/test/c","Output":"?   \tc\t[no test files]\n"}
{"Action":"skip","Package":"roomsensor/test/c","Elapsed":0}
`

func TestResults(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	require.NoError(t, os.WriteFile(path, []byte(events), 0o600))
	r := newResults()
	require.NoError(t, r.read(path))
	require.Equal(t, []string{"`test/a` TestOne", "`test/b` TestOne"}, r.proofs("A"), "not TestTwo, of which a part was skipped")
	require.Empty(t, r.proofs("B"), "a part of TestMachine depends on the machine")

	require.Equal(t, `slowest tests, in seconds:
    2.25  test/b TestTwo
    1.50  test/b TestThree
    0.00  test/a TestOne
`, r.slowest())
	require.ErrorContains(t, r.checkTrials(), `["A" "B"]`)
	require.NoError(t, newResults().checkTrials())

	require.ErrorContains(t, r.parse(strings.NewReader(`{"Action":"run"} {`)), "unexpected EOF")
	require.ErrorIs(t, r.read(path+"x"), os.ErrNotExist)
}

func TestInvocations(t *testing.T) {
	t.Parallel()
	packages := []string{"roomsensor/internal/api", "roomsensor/internal/apiclient", "roomsensor/internal/store/pg"}
	for name, test := range map[string]struct {
		args string
		want []invocation
	}{
		"all":                   {"", []invocation{{false, packages}}},
		"all, with a flag":      {"-run X", []invocation{{false, append(slices.Clone(packages), "-run", "X")}}},
		"a package":             {"-run X ./a", []invocation{{false, []string{"-run", "X", "./a"}}}},
		"a package, with -race": {"-race ./a", []invocation{{true, []string{"-race", "./a"}}}},
		"all, with -race": {"-race -short", []invocation{
			{false, []string{packages[1], "-short"}},
			{true, []string{packages[0], packages[2], "-short", "-race"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, invocations(strings.Fields(test.args), slices.Clone(packages)))
		})
	}
}

// TestPackageLists checks that the lists name packages that exist.
func TestPackageLists(t *testing.T) {
	t.Parallel()
	for _, dir := range slices.Concat(trials(), concurrent(), longest()) {
		require.DirExists(t, filepath.Join("../..", dir))
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	r := &results{claims: map[string]map[string]bool{
		"decision 1 a": {"`a` TestA": true},
		"decision 2 b": {"`a` TestB": true, "`a` TestA": true, "`b` TestA": true, "`b` TestB": true, "`c` TestA": true},
	}}
	require.Equal(t, introduction+`
Rules: 4. Proved by tests: 3. Not observable, with another proof: 1.

## Part 1

| rule | proved by |
|---|---|
| [decision 1 a](contract.md#decision-1-a) | `+"`a` TestA"+` |
| [decision 1 b](contract.md#decision-1-b) | **no test** |

## Part 2

| rule | proved by |
|---|---|
| [decision 2 a](contract.md#decision-2-a) | not observable: a \| store; shown in internal/store. |
| [decision 2 b](contract.md#decision-2-b) | `+"`a` TestA, `a` TestB, `b` TestA and 2 more"+` |
`, r.page([]conformance.Rule{
		{ID: "decision 1 a", Anchor: "decision-1-a", Section: "Part 1"},
		{ID: "decision 1 b", Anchor: "decision-1-b", Section: "Part 1"},
		{ID: "decision 2 a", Anchor: "decision-2-a", Section: "Part 2", Unobservable: "a | store; shown in internal/store."},
		{ID: "decision 2 b", Anchor: "decision-2-b", Section: "Part 2"},
	}))
}

func TestCheckPage(t *testing.T) {
	t.Chdir(t.TempDir())
	r := &results{claims: map[string]map[string]bool{}}
	require.ErrorIs(t, r.checkPage(), os.ErrNotExist)
	require.Error(t, r.writePage(), "there is no directory")
	require.NoError(t, os.Mkdir(filepath.Dir(pagePath), 0o755))
	for _, rule := range conformance.Rules() {
		r.claims[rule.ID] = map[string]bool{"`a` TestA": true}
	}
	require.NoError(t, r.writePage())
	require.NoError(t, r.checkPage(), "the page that was just written is up to date")

	unproven := conformance.Rules()[0].ID
	delete(r.claims, unproven)
	err := r.checkPage()
	require.ErrorContains(t, err, "\n  "+unproven+" (")
	require.ErrorContains(t, err, pagePath+" is out of date")
	require.ErrorContains(t, r.writePage(), unproven)
}
