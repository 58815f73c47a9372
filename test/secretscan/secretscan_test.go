package secretscan_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/secretscan"
)

func TestFind(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"password": "Canary-Password-1", "key": "abcdefghijklmnopqrstuvwxyz"}
	for text, want := range map[string][]string{
		"":                              nil,
		"a canary and a password":       nil,
		"abcdefghijk lmnopqrstuv":       nil,
		"u:canary-password-1@db":        {"password"},
		"?key=ABCDEFGHIJKL...":          {"key"},
		"...opqrstuvwxyz, ary-Password": {"key", "password"},
		hex.EncodeToString([]byte("u:Canary-Password-1")):                       {"password"},
		base64.StdEncoding.EncodeToString([]byte("u:" + secrets["password"])):   {"password"},
		base64.RawURLEncoding.EncodeToString([]byte("user:" + secrets["key"])):  {"key"},
		base64.RawURLEncoding.EncodeToString([]byte("users:" + secrets["key"])): {"key"},
	} {
		require.Equal(t, want, secretscan.Find([]byte("x"+text), secrets), text)
	}
	require.Panics(t, func() { secretscan.Find(nil, map[string]string{"short": "secret"}) })
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, kind := range []roomsensor.KeyKind{roomsensor.APIKey, roomsensor.IngestKey} {
		for range 1000 {
			id, key, _ := roomsensor.GenerateKey(kind)
			_, secret, _ := strings.Cut(strings.TrimPrefix(key, string(kind)+"_"), "_")
			require.Equal(t, []string{secret}, secretscan.Keys([]byte(`{"url":"/v1/readings.csv?key=`+key+`&last=1h"}`)))
			require.Equal(t, []string{strings.ToUpper(secret)}, secretscan.Keys([]byte(strings.ToUpper(key))))
			require.Empty(t, secretscan.Keys([]byte(id+" "+httpedge.NewRequestID()+" rsk_"+id+"_xxxxx")))
		}
	}
	require.Empty(t, secretscan.Keys([]byte(strings.Repeat("x", 200)+strings.Repeat("abc", 99))))
}

func TestInternals(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`ERROR: relation "teams" does not exist`, "SQLSTATE 42P01", "SELECT 1", "pq: no route", "main.go:17", "goroutine 7", "strconv.Atoi: x",
		"dial tcp 10.1.2.3:5432", "context canceled", "unexpected EOF", "%!d(string=x)", "nats: timeout",
	} {
		require.NotEmpty(t, secretscan.Internals(text), text)
	}
	for _, text := range []string{
		"The window is wider than 90 days. Select fewer devices from the list, or set to.", "An unexpected field.", "The column is unknown.",
		"Ask for a shorter context.", "A constraint of the request.",
	} {
		require.Empty(t, secretscan.Internals(text), text)
	}
}
