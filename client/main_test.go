package client_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/uuid"
)

// The service of the examples: test/client, in the module of the service, starts it and runs them.
var (
	baseURL = os.Getenv("ROOMSENSOR_EXAMPLES_URL")
	apiKey  = os.Getenv("ROOMSENSOR_EXAMPLES_KEY")
	// weightRoom has readings on November 1, 2024.
	weightRoom = uuid.MustParse("0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10")
	dorm       = uuid.MustParse("6d2f9b34-1c7d-4e0b-b1aa-93c0d5e8f421")
)

func TestMain(m *testing.M) {
	if baseURL == "" {
		_, _ = fmt.Fprintln(os.Stderr, "The examples need a service: test/client runs them.")
		return
	}
	os.Exit(m.Run())
}
