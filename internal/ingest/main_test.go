package ingest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pass lets time go by on the clock of a synctest bubble.
func pass(d time.Duration) { time.Sleep(d) }

// patience bounds every wait of a test.
const patience = 30 * time.Second
