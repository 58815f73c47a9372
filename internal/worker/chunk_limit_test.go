package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// However many uploads of a batch create chunks, those of a team are counted at once.
func TestChunkLimitCountsOnce(t *testing.T) {
	t.Parallel()
	f, s := inMemory()
	var deliveries []*delivery
	for i := range 100 {
		d := weekly(f.second, uint64(i+1), roomsensor.MeasuredFrom.Add(time.Duration(i)*week), 1)
		d.arrival.Team = &f.ours
		deliveries = append(deliveries, d)
	}
	_, err := s.writer().write(t.Context(), deliveries)
	require.NoError(t, err)
	require.Equal(t, 1, s.opened)
}
