package compress_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/compress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestChoose(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]compress.Coding{
		"":                            compress.Identity,
		"gzip":                        compress.Gzip,
		"x-gzip":                      compress.Gzip,
		"GZIP":                        compress.Gzip,
		"zstd":                        compress.Zstd,
		"gzip, zstd":                  compress.Zstd,
		"gzip, deflate, br, zstd":     compress.Zstd,
		"br, deflate":                 compress.Identity,
		"gzip;q=0":                    compress.Identity,
		"gzip;q=0.0, zstd;q=0":        compress.Identity,
		"gzip;q=0.001":                compress.Gzip,
		"gzip;q=1.0, zstd;q=0.5":      compress.Gzip,
		"gzip ; q=0.5 , zstd ; Q=0.8": compress.Zstd,
		"*":                           compress.Zstd,
		"*;q=0":                       compress.Identity,
		"zstd;q=0, *":                 compress.Gzip,
		"identity;q=1, gzip;q=0.5":    compress.Identity,
		"identity;q=0, gzip;q=0.1":    compress.Gzip,
		"identity, gzip":              compress.Gzip,
		"gzip;q=2":                    compress.Identity,
		"gzip;q=NaN":                  compress.Identity,
		"gzip;q=":                     compress.Identity,
		"gzip;level=9;q=0":            compress.Identity,
		",, gzip ,":                   compress.Gzip,
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, compress.Choose([]string{header}))
		})
	}
	require.Equal(t, compress.Gzip, compress.Choose([]string{"br", "gzip"}), "several lines are one list")
	require.Equal(t, compress.Identity, compress.Choose(nil))
}

// expand decompresses a body. It fails if the end of the body is missing.
func expand(t *testing.T, coding compress.Coding, body []byte) ([]byte, error) {
	t.Helper()
	if coding == compress.Gzip {
		r, err := gzip.NewReader(bytes.NewReader(body))
		require.NoError(t, err)
		return io.ReadAll(r)
	}
	r, err := zstd.NewReader(bytes.NewReader(body))
	require.NoError(t, err)
	defer r.Close()
	return io.ReadAll(r)
}

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, coding := range []compress.Coding{compress.Gzip, compress.Zstd} {
		for _, body := range []string{"", "short", strings.Repeat("2026-11-20T10:00:00Z,612,21.4\n", 50_000)} {
			packed, err := compress.Append([]byte("kept"), []byte(body), coding)
			require.NoError(t, err)
			require.Equal(t, "kept", string(packed[:4]))
			got, err := expand(t, coding, packed[4:])
			require.NoError(t, err)
			require.Equal(t, body, string(got))
			if coding == compress.Zstd {
				got, err = compress.ExpandZstd(packed[4:])
				require.NoError(t, err)
				require.Equal(t, body, string(got))
			}
		}
	}
	_, err := compress.ExpandZstd([]byte("not compressed"))
	require.Error(t, err)
}

// An abandoned body must not look complete (decision 32).
func TestWriterAbandon(t *testing.T) {
	t.Parallel()
	for _, coding := range []compress.Coding{compress.Gzip, compress.Zstd} {
		var sink bytes.Buffer
		w := compress.NewWriter(&sink, coding)
		_, err := w.Write(bytes.Repeat([]byte("a line that will be cut\n"), 100_000))
		require.NoError(t, err)
		w.Abandon()
		_, err = expand(t, coding, sink.Bytes())
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, coding)
	}
}
