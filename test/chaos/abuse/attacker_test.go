package abuse

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/roomsensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{Full(0), Short(0)} {
		require.NoError(t, o.Validate())
		o.Only = []string{"lines", "nothing"}
		require.EqualError(t, o.Validate(), `there is no attack "nothing"`)
	}
	_, err := Run(t.Context(), Options{})
	require.EqualError(t, err, "all times and numbers must be greater than 0")
}

// Every attack has an attacker with a team, so that a trial does not end in the middle.
func TestAttacks(t *testing.T) {
	t.Parallel()
	for _, a := range all() {
		require.NotNil(t, a.load, a.name)
		require.NotZero(t, a.team, a.name)
	}
}

// runAttacker runs the process of an attacker in this process until the server has had a number of requests.
func runAttacker(t *testing.T, name string, requests int32, answer http.HandlerFunc) Tally {
	t.Helper()
	enough := make(chan struct{})
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, r)
		if n.Add(1) == requests {
			close(enough)
		}
	}))
	t.Cleanup(server.Close)
	_, key, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	known, err := json.Marshal(target{
		API: server.URL, Receiver: server.URL, Keys: []string{key}, Credentials: []string{"rsi_x"},
		Units: []string{"dev:1"}, Duration: time.Second,
	})
	require.NoError(t, err)
	in, input := io.Pipe()
	go func() {
		_, _ = input.Write(append(known, "\ngo\n"...))
		<-enough
		_ = input.Close()
	}()
	var out bytes.Buffer
	require.NoError(t, Attack(t.Context(), name, in, &out))
	ready, counts, _ := strings.Cut(out.String(), "\n")
	require.Equal(t, "ready", ready)
	var tally Tally
	require.NoError(t, json.Unmarshal([]byte(counts), &tally))
	return tally
}

func TestAttacker(t *testing.T) {
	t.Parallel()
	var body []byte
	var read sync.Once
	tally := runAttacker(t, "lines", 8, func(w http.ResponseWriter, r *http.Request) {
		read.Do(func() {
			unpacked, err := gzip.NewReader(r.Body)
			if err == nil {
				body, _ = io.ReadAll(unpacked)
			}
		})
		w.WriteHeader(http.StatusTooManyRequests)
	})
	require.GreaterOrEqual(t, tally["429"], 4, "it goes on after it was refused: %v", tally)
	require.Equal(t, strings.Repeat("1\n", bodySize/2), string(body))

	require.EqualError(t, Attack(t.Context(), "nothing", nil, nil), `there is no attack "nothing"`)
}

func TestPack(t *testing.T) {
	t.Parallel()
	const size = 3<<20 + 1
	p, err := pack(windowed(16<<20), "ab", size)
	require.NoError(t, err)
	var header zstd.Header
	require.NoError(t, header.Decode(p.head))
	require.Equal(t, uint64(16<<20), header.WindowSize)
	decoder, err := zstd.NewReader(p.body())
	require.NoError(t, err)
	defer decoder.Close()
	text, err := io.ReadAll(decoder)
	require.NoError(t, err)
	require.Len(t, text, size)

	p, err = pack(gzipped, "ab", size)
	require.NoError(t, err)
	require.NotEmpty(t, p.rest)
	unpacked, err := gzip.NewReader(bytes.NewReader(p.head))
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, unpacked)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, int64(size), n, "the head holds everything")
}

func TestTrickle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		text, err := io.ReadAll(&trickle{t.Context(), []byte("head"), []byte("rest")})
		require.NoError(t, err)
		require.Equal(t, "headrest", string(text))
		require.Equal(t, 5*time.Second, time.Since(began), "a byte per second, and the end")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		text, err = io.ReadAll(&trickle{ctx, []byte("head"), []byte("rest")})
		require.NoError(t, err)
		require.Equal(t, "head", string(text))
	})
}

func TestSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 777
		var called [n]atomic.Int32
		began := time.Now()
		spread(t.Context(), n, time.Second, func(_ context.Context, i int) { called[i].Add(1) })
		require.WithinDuration(t, began.Add(time.Second), time.Now(), 10*time.Millisecond)
		for i := range called {
			require.Equal(t, int32(1), called[i].Load())
		}
	})
}
