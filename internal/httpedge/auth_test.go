package httpedge_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// unavailableKeys is a KeySource whose database is unavailable.
type unavailableKeys struct{}

func (unavailableKeys) Cached(string) (key roomsensor.Key, ok bool) { return key, false }

func (unavailableKeys) Find(context.Context, string) (roomsensor.Key, error) {
	return roomsensor.Key{}, errors.New("unavailable")
}

// A malformed key is refused without a lookup, and the message states the fix.
func TestRefusalMessages(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 44 b", "decision 47")
	_, apiKey, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	_, ingestKey, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	for _, kind := range []struct {
		codes                  *httpedge.KeyCodes
		invalid                roomsensor.Code
		key, other             string
		wrongKind, placeholder string
	}{
		{httpedge.APIKeyCodes(), roomsensor.CodeAPIKeyInvalid, apiKey, ingestKey, "This is an upload credential", "Bearer <API_KEY>"},
		{httpedge.IngestKeyCodes(), roomsensor.CodeIngestKeyInvalid, ingestKey, apiKey, "This is an API key", "Bearer <INGEST_KEY>"},
	} {
		auth := httpedge.NewAuthenticator(unavailableKeys{}, kind.codes, time.Now)
		for _, c := range []struct {
			headers []string
			message string
		}{
			{[]string{kind.key}, "does not begin with Bearer. Send your"},
			{[]string{kind.key}, kind.placeholder},
			{[]string{"Basic " + kind.key}, "Basic credentials are not accepted. Send your"},
			{[]string{"Basic " + kind.key}, kind.placeholder},
			{[]string{"Bearer " + kind.key, "Bearer " + kind.key}, "more than once"},
			{[]string{kind.other}, kind.wrongKind},
			{[]string{"Bearer " + kind.other}, kind.wrongKind},
			{[]string{"Bearer " + kind.other[:20]}, kind.wrongKind},
			{[]string{"Bearer " + kind.key[:len(kind.key)-1]}, "is cut off or was changed"},
			{[]string{"Bearer " + kind.key[:5]}, "is cut off or was changed"},
			{[]string{"Bearer " + kind.key[4:]}, "This is not a complete "},
			{[]string{"Bearer "}, "This is not a complete "},
		} {
			text, err := kind.codes.Bearer(c.headers)
			if err == nil {
				_, err = auth.Authenticate(t.Context(), text)
			}
			refusal, ok := errors.AsType[*roomsensor.Error](err)
			require.True(t, ok, "%q: %v", c.headers, err)
			require.Equal(t, kind.invalid, refusal.Code, "%q", c.headers)
			require.Contains(t, refusal.Message, c.message, "%q", c.headers)
		}
		empty := httpedge.NewKeyCache(func(context.Context, []string) ([]roomsensor.Key, error) {
			return nil, nil
		}, time.Now)
		_, err := httpedge.NewAuthenticator(empty, kind.codes, time.Now).Authenticate(t.Context(), kind.key)
		require.ErrorContains(t, err, "This service has no such")
	}
}
