package samples_test

import (
	"testing"

	"roomsensor/test/dbtest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }
