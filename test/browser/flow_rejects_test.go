package browser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testUnknownUnit registers a unit that uploaded before anybody knew it, and sees its readings after the replay.
func (f *flow) testUnknownUnit(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Admin)
	p.enter(t, "Keys")
	p.enter(t, "Create an upload credential")
	p.fill(t, "What is it for?", "Gateway")
	p.enter(t, "Create")
	credential := p.secret(t, "upload credential")

	unit, now := newUnit(), time.Now()
	f.upload(t, credential, unit, 612, now.Add(-30*time.Minute), now.Add(-20*time.Minute), now.Add(-10*time.Minute))
	require.Eventually(t, func() bool {
		p.open(t, f.path+"/rejects")
		return strings.Contains(p.text(t), unit)
	}, patience, 100*time.Millisecond)
	require.Contains(t, p.text(t), "unknown_unit")
	p.enter(t, "Register "+unit)
	p.fill(t, "Name of the device", "Boiler room")
	p.fill(t, "Tags", "building=gym")
	p.enter(t, "Add the device")
	require.Contains(t, p.text(t), "The unit "+unit+" is registered.")
	require.NotContains(t, p.text(t), "Register "+unit)
	p.enter(t, "Replay 1")
	require.Contains(t, p.text(t), "1 reject stored in full.")
	p.enter(t, "Back to the rejects")
	require.Contains(t, p.text(t), "all replayed")
	p.enter(t, "Boiler room")
	p.expand(t, "The same numbers as a table (3 readings)")
	require.Contains(t, p.text(t), "612")
	require.Contains(t, p.text(t), "building=gym")

	// Later uploads need no replay.
	f.upload(t, credential, unit, 613, now)
	require.Eventually(t, func() bool {
		p.open(t, p.address(t))
		return strings.Contains(p.text(t), "4 readings")
	}, patience, 100*time.Millisecond)
	p.requireQuiet(t)
}
