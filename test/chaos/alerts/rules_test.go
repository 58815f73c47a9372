package alerts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// TestShortenRules checks what the trial changes in the rules, and what it leaves.
func TestShortenRules(t *testing.T) {
	t.Parallel()
	require.Equal(t, 10*time.Second, shorten(10*time.Minute, time.Second))
	require.Equal(t, 15*time.Second, shorten(5*time.Minute, minRange), "as many scrapes as in production")
	require.Equal(t, maxTime, shorten(24*time.Hour, minRange))
	require.Equal(t, "rate(x[15s]) / sum(increase(y[30s])) unless z offset 15s > 600",
		shortenQuery("rate(x[5m]) / sum(increase(y[30m])) unless z offset 15m > 600"))

	rules := readRules(t)
	short, err := shortenRules(rules)
	require.NoError(t, err)
	for _, want := range []string{
		"        for: 10s\n", "_exports_oldest_seconds) > 60\n", "has been running for more than an hour", "> 2.5\n",
		"_observed_timestamp_seconds > 60\n", // Of the queue, which is read often enough.
	} {
		require.Contains(t, short, want)
	}
	require.NotContains(t, short, "for: 10m\n")
	require.Equal(t, alertNames(rules), alertNames(short))
	_, err = shortenRules("groups: []\n")
	require.ErrorContains(t, err, "has no")
}

func readRules(t *testing.T) string {
	t.Helper()
	return readText(t, "deploy/prometheus/rules.yml")
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// Each alert has a fault that must fire it, or a reason why there is none.
func TestFaults(t *testing.T) {
	t.Parallel()
	var fired []string
	for _, f := range faults() {
		require.NotEmpty(t, f.does)
		require.NotNil(t, f.inject, f.does)
		fired = append(fired, f.alerts...)
	}
	for alert := range untried {
		fired = append(fired, alert)
	}
	slices.Sort(fired)
	require.Equal(t, slices.Sorted(slices.Values(alertNames(readRules(t)))), fired)
	require.NoError(t, (&Options{Only: []string{"RoomsensorNotReady"}}).Validate())
	require.ErrorContains(t, (&Options{Only: []string{"x"}}).Validate(), `no fault fires the alert "x"`)
}
