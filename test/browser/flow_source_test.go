package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testSource leads an admin from an empty team to the first reading of a platform whose messages have other names than
// its format expects.
func (f *flow) testSource(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Admin)
	p.enter(t, "Sources")
	p.enter(t, "Add a source")
	p.choose(t, "What sends here?", "Blues Notehub")
	p.fill(t, "Name", "Notehub")
	p.enter(t, "Add")
	credential := p.secret(t, "credential")
	address := evaluate[string](t, p, `document.getElementById('address').textContent`)
	require.Contains(t, p.text(t), "Waiting for the first message")

	unit := newUnit()
	f.send(t, address, credential, fmt.Sprintf(`{"device": %q, "when": %d, "body": {"co2_level": 612}}`,
		unit, time.Now().Add(-10*time.Minute).Unix()))
	if f.view.scripts {
		require.Eventually(t, func() bool { return strings.Contains(p.text(t), "Last message") }, patience, 100*time.Millisecond)
	}
	p.enter(t, "I have copied it")
	require.Eventually(t, func() bool {
		p.open(t, p.address(t))
		return strings.Contains(p.text(t), "1 reject of this source is kept")
	}, patience, 100*time.Millisecond)
	require.Contains(t, p.text(t), "not_mapped")
	p.requireNoSecret(t, credential)

	p.enter(t, "Use for co2_ppm")
	require.Contains(t, p.text(t), "This mapping is not saved yet.")
	require.Contains(t, p.text(t), "unknown_unit")
	p.enter(t, "Save")
	require.Contains(t, p.text(t), "The mapping is saved.")
	p.enter(t, "Register "+unit)
	p.fill(t, "Name of the device", "Boiler room")
	p.enter(t, "Add the device")
	p.enter(t, "Sources")
	p.enter(t, "Notehub")
	p.enter(t, "Store what arrived before")
	require.Contains(t, p.text(t), "1 reject stored in full.")
	p.enter(t, "Back to the source")
	p.enter(t, "Boiler room")
	p.expand(t, "The same numbers as a table (1 reading)")
	require.Contains(t, p.text(t), "612")
	p.requireQuiet(t)
}

// send posts a message to a source, and waits until the receiver has stored it.
func (f *flow) send(t *testing.T, address, credential, message string) {
	t.Helper()
	require.Eventually(t, func() bool { // The receiver learns of a new credential within seconds.
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(message))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+credential)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode/100 == 2
	}, patience, 100*time.Millisecond)
}
