package canary_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/canary"
	"roomsensor/internal/problem"
	"roomsensor/internal/roomsensor"
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
		require.Equal(t, want, canary.Find([]byte("x"+text), secrets), text)
	}
	require.Panics(t, func() { canary.Find(nil, map[string]string{"short": "secret"}) })
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, kind := range []roomsensor.KeyKind{roomsensor.APIKey, roomsensor.IngestKey} {
		for range 1000 {
			id, key, _ := roomsensor.GenerateKey(kind)
			_, secret, _ := strings.Cut(strings.TrimPrefix(key, string(kind)+"_"), "_")
			require.Equal(t, []string{secret}, canary.Keys([]byte(`{"url":"/v1/readings.csv?key=`+key+`&last=1h"}`)))
			require.Equal(t, []string{strings.ToUpper(secret)}, canary.Keys([]byte(strings.ToUpper(key))))
			require.Empty(t, canary.Keys([]byte(id+" "+problem.NewRequestID()+" rsk_"+id+"_xxxxx")))
		}
	}
	require.Empty(t, canary.Keys([]byte(strings.Repeat("x", 200)+strings.Repeat("abc", 99))))
}
