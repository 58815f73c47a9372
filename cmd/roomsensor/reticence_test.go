package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// The receiver answers what it cannot read in its own words, too.
func TestReceiverAnswersInOwnWords(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 34.1", "decision 36")
	s := newSite(t)
	key := s.id("key", "ingest-key", "create", "--team", s.team)
	for _, tc := range []struct{ body, encoding string }{
		{"", ""},
		{"{", ""},
		{"\xff\xfe", ""},
		{`{"hardware_id":"dev:1","readings":[1e999,]}`, ""},
		{`{"hardware_id":"dev:1","readings":[],"readings":[]}`, ""},
		{`{"hardware_id":"'; DROP TABLE readings","readings":[]}`, ""},
		{strings.Repeat("[", 20_000), ""},
		{"no gzip", "gzip"},
		{"\x1f\x8b\x08\x00\x00", "gzip"},
		{"no zstd", "zstd"},
		{"\x28\xb5\x2f\xfd\xff\xff\xff\xff", "zstd"},
		{"{}", "br"},
	} {
		got := s.receiver.ask(http.MethodPost, "/uploads", key, tc.body, "Content-Encoding: "+tc.encoding)
		require.NoError(t, got.err)
		require.Equal(t, http.StatusBadRequest, got.status, "%q: %s", tc.body, got.body)
		require.Contains(t, got.body, `"type":"invalid_request_error","code":"validation_failed"`)
		require.NotRegexp(t, `(?i)\b(json:|jsontext|invalid character|unexpected|EOF|magic|window|frame|gzip:|zstd:|goroutine|\w+\.go|nats)\b`, got.body)
	}
	for _, wrong := range []string{"", "rsi_x_y", "rsk_" + strings.TrimPrefix(key, "rsi_"), strings.ToUpper(key)} {
		got := s.receiver.ask(http.MethodPost, "/uploads", wrong, "{}")
		require.Equal(t, http.StatusUnauthorized, got.status)
		require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
		require.Contains(t, got.body, `"param":null`)
	}
}
