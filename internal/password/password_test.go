package password

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	// A hash that version 0.1.0 stored.
	const stored = "$argon2id$v=19$m=19456,t=2,p=1$EfuHFEBXZZO/KgBM/Ll/iQ$6UAs6iNQ/dAnqXeDQEfD1HboV6Z/aJD74UjX63l8S3o"
	fresh, err := Default.Hash(t.Context(), "correct horse")
	require.NoError(t, err)
	require.Equal(t, stored[:len("$argon2id$v=19$m=19456,t=2,p=1$")], fresh[:len("$argon2id$v=19$m=19456,t=2,p=1$")])
	for _, hash := range []string{stored, fresh} {
		for text, want := range map[string]bool{"correct horse": true, "Correct horse": false} {
			got, err := Matches(t.Context(), hash, text)
			require.NoError(t, err)
			require.Equal(t, want, got, text)
		}
	}
	got, err := Matches(t.Context(), Unknown, "")
	require.NoError(t, err)
	require.False(t, got)
}

func TestReadList(t *testing.T) {
	t.Parallel()
	list, err := ReadList(strings.NewReader("short\r\nTrustNo1TrustNo1\r\n\nгорошегоденька"), 12)
	require.NoError(t, err)
	for text, want := range map[string]bool{
		"trustno1trustno1": true, "горошегоденька": true, "short": false, "": false, "trustno1trustno": false,
	} {
		require.Equal(t, want, list.Has(text), text)
	}
	require.False(t, List{}.Has("trustno1trustno1"))
	_, err = ReadList(strings.NewReader(strings.Repeat("x", 100_000)), 12)
	require.ErrorContains(t, err, "reading the list of passwords")
}

func TestMatchesMalformed(t *testing.T) {
	t.Parallel()
	for _, hash := range []string{
		"", "plain", strings.Replace(Unknown, "v=19", "v=16", 1), strings.Replace(Unknown, "t=2", "t=0", 1),
		strings.Replace(Unknown, "p=1", "p=0", 1), Unknown[:strings.LastIndex(Unknown, "$")+1],
	} {
		_, err := Matches(t.Context(), hash, "")
		require.ErrorContains(t, err, "reading a password hash", hash)
	}
}
