package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// claim and end are lines of `go test -json`.
func claim(pkg, test, id string) string {
	return `{"Action":"attr","Package":"roomsensor/` + pkg + `","Test":"` + test + `","Key":"contract","Value":"` + id + `"}`
}

func end(pkg, test, action string) string {
	return `{"Action":"` + action + `","Package":"roomsensor/` + pkg + `","Test":"` + test + `"}`
}

func proofOf(t *testing.T, events ...string) *proof {
	t.Helper()
	s, err := count(strings.NewReader(strings.Join(events, "\n")))
	require.NoError(t, err)
	return s.proof
}

// provers are the tests of the sentence A.
func provers(t *testing.T, events ...string) string {
	t.Helper()
	var names []string
	for _, name := range proofOf(t, events...).tests()["A"] {
		names = append(names, name.pkg+" "+name.test)
	}
	return strings.Join(names, ", ")
}

func TestOnlyWhatPassedProves(t *testing.T) {
	t.Parallel()
	needsMachine := strings.NewReplacer("contract", conformance.MachineKey).Replace(claim("api", "TestX/s", "docker"))
	for name, tc := range map[string]struct {
		events []string
		want   string
	}{
		"passed":  {[]string{claim("api", "TestX", "A"), end("api", "TestX", "pass")}, "roomsensor/api TestX"},
		"failed":  {[]string{claim("api", "TestX", "A"), end("api", "TestX", "fail")}, ""},
		"skipped": {[]string{claim("api", "TestX", "A"), end("api", "TestX", "skip")}, ""},
		"broken off": {
			[]string{claim("api", "TestX", "A"), `{"Action":"fail","Package":"roomsensor/api"}`}, "",
		},
		"passed in another package": {[]string{claim("api", "TestX", "A"), end("app", "TestX", "pass")}, ""},
		"other attribute": {
			[]string{strings.Replace(claim("api", "TestX", "A"), "contract", "colour", 1), end("api", "TestX", "pass")}, "",
		},
		"subtest": {
			[]string{claim("api", "TestX/a/b", "A"), end("api", "TestX/a/b", "pass"), end("api", "TestX", "pass")},
			"roomsensor/api TestX",
		},
		"subtest beside one that failed": {
			[]string{
				claim("api", "TestX/a", "A"), claim("api", "TestX", "A"),
				end("api", "TestX/a", "pass"), end("api", "TestX/b", "fail"), end("api", "TestX", "fail"),
			},
			"roomsensor/api TestX",
		},
		"part of it was skipped": {
			[]string{claim("api", "TestX", "A"), end("api", "TestX/s", "skip"), end("api", "TestX", "pass")}, "",
		},
		"beside a part that was skipped": {
			[]string{
				claim("api", "TestX/a", "A"), end("api", "TestX/a", "pass"),
				end("api", "TestX/s", "skip"), end("api", "TestX", "pass"),
			},
			"roomsensor/api TestX",
		},
		"part of it needs a machine": {
			[]string{
				needsMachine, claim("api", "TestX", "A"), claim("api", "TestX/s/t", "A"),
				end("api", "TestX/s/t", "pass"), end("api", "TestX/s", "pass"), end("api", "TestX", "pass"),
			},
			"",
		},
		"sorted, each once": {
			[]string{
				claim("ingest", "TestA", "A"), claim("api", "TestZ/1", "A"), claim("api", "TestZ/2", "A"), claim("api", "TestB", "A"),
				end("api", "TestZ/2", "pass"), end("api", "TestZ/1", "pass"), end("api", "TestB", "pass"),
				end("ingest", "TestA", "pass"),
			},
			"roomsensor/api TestB, roomsensor/api TestZ, roomsensor/ingest TestA",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, provers(t, tc.events...))
		})
	}
}

// Go writes an attribute as an event of its own, and as a line of output, which counts for nothing.
func TestClaimsComeFromRealEvents(t *testing.T) {
	t.Parallel()
	written := `{"Time":"2026-11-20T10:00:00Z","Action":"attr","Package":"roomsensor/api","Test":"TestX","Key":"contract","Value":"A"}
{"Time":"2026-11-20T10:00:00Z","Action":"output","Package":"roomsensor/api","Test":"TestX","Output":"=== ATTR  TestX contract A\n"}
{"Time":"2026-11-20T10:00:00Z","Action":"pass","Package":"roomsensor/api","Test":"TestX","Elapsed":0}`
	require.Equal(t, "roomsensor/api TestX", provers(t, written))
}
