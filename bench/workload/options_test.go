package workload

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/postgres"
)

func TestParseOptions(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions([]string{"-only", "W2,W3", "-rounds", "1"}, io.Discard, false)
	require.NoError(t, err)
	require.Equal(t, []string{"W2", "W3"}, o.Only)
	for _, args := range [][]string{
		{"-deep", "2000"},
		{"-days", "3"},
		{"-rounds", "0"},
		{"-x"},
		{"-only", "W6,P"},
		{"-only", "P4"},
		{"-change-rate", "0"},
		{"-teams", "0"},
		{"-cpu-uploads", "0"},
		{"-memory-teams", "0"},
		{"-team-devices", "1001"},
		{"-layout", "random"},
		{"-layout", "ordered,arrived"},
		{"-layout", "arrived,arrived"},
		{"quick", "-layout", "columnstore", "-days", "7"},
	} {
		_, err := ParseOptions(args, io.Discard, false)
		require.Error(t, err, args)
	}
}

func TestOptionsMeasures(t *testing.T) {
	t.Parallel()
	for only, want := range map[string]struct{ w2, p3, p8, peers, database bool }{
		"":      {true, true, true, true, true},
		"P":     {false, true, true, true, true},
		"W2,P8": {true, false, true, false, true},
		"P3":    {false, true, false, true, false},
		"W2":    {true, false, false, false, false},
	} {
		o, err := ParseOptions([]string{"-only", only}, io.Discard, true)
		require.NoError(t, err)
		require.Equal(t, want, struct{ w2, p3, p8, peers, database bool }{
			o.Measures("W2"), o.Measures("P3"), o.Measures("P8"), o.measuresPeers(), o.measuresDatabase(),
		}, only)
	}
	without, err := ParseOptions(nil, io.Discard, false)
	require.NoError(t, err)
	require.False(t, without.Measures("P3") || without.measuresPeers() || without.measuresDatabase())
}

// W11 alone must not wait for the history of the fleet, which takes minutes.
func TestOptionsSetUp(t *testing.T) {
	t.Parallel()
	for only, want := range map[string]struct{ fleet, teams bool }{
		"": {true, true}, "W1": {true, false}, "W11": {false, true}, "W11,W12": {false, true}, "W8,W12": {true, true}, "W16": {false, false},
	} {
		o, err := ParseOptions([]string{"-only", only}, io.Discard, false)
		require.NoError(t, err)
		require.Equal(t, want, struct{ fleet, teams bool }{o.measuresFleet(), o.measuresTeams()}, only)
	}
}

func TestOptionsCheckServer(t *testing.T) {
	t.Parallel()
	with := Options{Layouts: Layouts()}
	require.NoError(t, with.checkServer(postgres.Info{Edition: postgres.Community}))
	err := with.checkServer(postgres.Info{Edition: postgres.Apache, TimescaleDB: "2.19.3", PostgreSQL: "17.11"})
	require.ErrorContains(t, err, "needs TimescaleDB's Community edition, and this server is TimescaleDB 2.19.3, apache edition")
	require.ErrorContains(t, err, "-database-url postgres://")
	without := Options{Layouts: []string{AsArrived, Ordered}}
	require.NoError(t, without.checkServer(postgres.Info{Edition: postgres.Apache}))
}
