package roomsensor_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestReasonAdvice checks that every reason has advice for people, and that the words agree with whether the
// dashboard offers a replay.
func TestReasonAdvice(t *testing.T) {
	t.Parallel()
	seen := map[string]roomsensor.Reason{}
	for _, reason := range roomsensor.Reasons {
		a := reason.Advice()
		require.Regexp(t, `^[A-Z].*\.$`, a.Cause, reason)
		require.Regexp(t, `^[A-Z].*\.$`, a.Fix, reason)
		require.Empty(t, seen[a.Cause], "%s has the cause of another reason", reason)
		seen[a.Cause] = reason
		offers := strings.Contains(strings.ToLower(a.Fix), "replay ")
		if strings.Contains(a.Fix, "A replay cannot help.") || strings.Contains(a.Fix, "No replay is needed.") {
			offers = false
		}
		require.Equal(t, a.Replayable, offers, "%s: %s", reason, a.Fix)
	}
}
