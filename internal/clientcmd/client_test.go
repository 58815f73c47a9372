package clientcmd

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/cli"
)

// Requests that wait at the same time are one line, and short pauses none.
func TestNoteRetries(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	note := noteRetries(&cli.Terminal{Stderr: &out})
	for _, pause := range []time.Duration{time.Second, 50 * time.Second, 55 * time.Second} {
		note(client.Retry{Pause: pause, Err: errors.New("too many")})
	}
	require.Equal(t, "roomsensor: trying again in 50s: too many\n", out.String())
}
