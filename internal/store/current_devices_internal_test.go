package store

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// TestPackedDevice checks that a device stays the same when it is packed.
func TestPackedDevice(t *testing.T) {
	t.Parallel()
	id := rapid.Custom(func(t *rapid.T) uuid.UUID {
		return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	})
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(pg.FirstTime, pg.LastTime).Draw(t, "time")).UTC()
	})
	text := rapid.String()
	assignment := rapid.Custom(func(t *rapid.T) roomsensor.Assignment {
		return roomsensor.Assignment{
			ID: id.Draw(t, "assignment"), Label: text.Draw(t, "label"), StartedAt: instant.Draw(t, "start"),
			ExternalRef: rapid.Ptr(text, true).Draw(t, "reference"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := roomsensor.Device{
			ID: id.Draw(t, "device"), HardwareID: text.Draw(t, "unit"), DisplayName: rapid.Ptr(text, true).Draw(t, "name"),
			FirmwareVersion: rapid.Ptr(text, true).Draw(t, "firmware"), Metadata: rapid.MapOf(text, text).Draw(t, "tags"),
			LastSeenAt: rapid.Ptr(instant, true).Draw(t, "seen"),
			Signal: roomsensor.Signal{
				RSSI: rapid.Ptr(rapid.Int32(), true).Draw(t, "rssi"), Bars: rapid.Ptr(rapid.Int16(), true).Draw(t, "bars"),
			},
			ActiveAssignment: rapid.Ptr(assignment, true).Draw(t, "assignment"),
		}
		if a := want.ActiveAssignment; a != nil {
			a.DeviceID = want.ID
		}
		require.Equal(t, want, packDevice(&want).unpack(want.ID))
	})
}
