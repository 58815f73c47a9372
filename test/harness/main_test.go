package harness

import (
	"testing"

	"roomsensor/test/dbtest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }
