package alerts

import (
	"os"
	"path/filepath"
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
	short := shortenRules(rules)
	for _, want := range []string{"        for: 10s\n", "_exports_oldest_seconds) > 3600\n", "> 2.5\n"} {
		require.Contains(t, short, want)
	}
	require.NotContains(t, short, "for: 10m\n")
	require.Equal(t, alertNames(rules), alertNames(short))
}

func readRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/rules.yml"))
	require.NoError(t, err)
	return string(text)
}

// TestFaults checks that the faults fire alerts of the rules.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faults() {
		require.NotEmpty(t, f.does)
		require.NotNil(t, f.inject, f.does)
		require.Subset(t, alertNames(readRules(t)), f.alerts)
	}
	require.NoError(t, (&Options{Only: []string{"RoomsensorNotReady"}}).Validate())
	require.ErrorContains(t, (&Options{Only: []string{"x"}}).Validate(), `no fault fires the alert "x"`)
}
