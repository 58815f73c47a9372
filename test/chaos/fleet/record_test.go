package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramQuantile(t *testing.T) {
	t.Parallel()
	var h histogram
	require.Zero(t, h.quantile(0.99))
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{
		0.001: time.Millisecond, 0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second,
	} {
		got := h.quantile(q)
		require.GreaterOrEqual(t, got, want)
		require.LessOrEqual(t, got, want*102/100)
	}
	h.add(0)
	h.add(48 * time.Hour)
	require.Equal(t, 48*time.Hour, h.max)
	require.Equal(t, 1002, h.count)
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	r.answered(uploads, time.Second)
	first, failed := r.next()
	require.Equal(t, 1, first[uploads].Requests)
	require.Zero(t, failed)
	for i := range 2 * maxReasons {
		r.fail(polls, fmt.Sprint(i))
		r.fail(polls, "0")
	}
	second, failed := r.next()
	require.Zero(t, second[uploads].Requests)
	require.Equal(t, 4*maxReasons, failed)
	require.Equal(t, 2*maxReasons+1, r.failures["current: 0"])
	require.Equal(t, maxReasons, r.failures["other reasons"])
	require.InEpsilon(t, 1.0, r.all()[uploads].P99, 0.02)
}
