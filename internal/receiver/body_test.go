package receiver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// pipeListener is a listener with one connection, a pipe in memory, so that its deadlines follow the clock of synctest.
type pipeListener struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conn:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error   { close(p.closed); return nil }
func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

// trickle posts a body in pieces of some sizes, each after a pause, and returns the answer's text and how long it took.
// The credential is valid for some time; 0 stands for an unknown one.
func trickle(t *testing.T, valid time.Duration, pieces []int, pause time.Duration) (string, time.Duration) {
	t.Helper()
	store, key := &keyStore{}, "none"
	if valid > 0 {
		_, key = store.addKey(roomsensor.Key{TeamID: uuid.New(), ExpiresAt: new(time.Now().Add(valid))})
	}
	length := 0
	for _, size := range pieces {
		length += size
	}
	sent := make(chan struct{})
	t.Cleanup(func() { <-sent })
	near := pipe(t, New(Config{Keys: store, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()}))
	go func() {
		defer close(sent)
		_, _ = fmt.Fprintf(near, "POST /uploads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", key, length)
		for _, size := range pieces {
			time.Sleep(pause)
			if _, err := io.WriteString(near, strings.Repeat("x", size)); err != nil {
				return // The server closed the connection.
			}
		}
	}()
	started := time.Now()
	response, err := http.ReadResponse(bufio.NewReader(near), nil)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return string(text), time.Since(started)
}

// pipe serves one connection in memory and returns its other end.
func pipe(t *testing.T, handler http.Handler) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	listener := &pipeListener{make(chan net.Conn, 1), make(chan struct{})}
	listener.conn <- far
	server := httpedge.NewServer(handler, zerolog.Nop())
	done := make(chan error)
	go func() { done <- serve(server, listener) }()
	t.Cleanup(func() {
		require.NoError(t, near.Close())
		require.NoError(t, server.Close())
		require.NoError(t, <-done)
	})
	return near
}

// A body may pause, and may take time if it keeps arriving, both up to a limit. The rest of a refused body is read for
// lingerTimeout.
func TestBodyDeadlines(t *testing.T) {
	t.Parallel()
	const pause = httpedge.StallTimeout - time.Second
	trickled := slices.Repeat([]int{1}, 100)
	for name, test := range map[string]struct {
		valid       time.Duration // of the credential
		pieces      []int
		pause, took time.Duration
		want        string
	}{
		"slow":           {time.Hour, slices.Repeat([]int{30 << 10}, 20), pause, 20 * pause, "The upload is not valid JSON"},
		"expires":        {time.Minute, slices.Repeat([]int{30 << 10}, 20), pause, 20 * pause, "ingest_key_expired"},
		"too slow":       {time.Hour, trickled, pause, time.Minute + lingerTimeout, "The body arrived too slowly."},
		"too slow later": {time.Hour, append([]int{100 << 10}, trickled...), pause, pause + time.Minute + lingerTimeout, "The body arrived too slowly."},
		"stalled":        {time.Hour, []int{1, 1}, pause + 2*time.Second, httpedge.StallTimeout + lingerTimeout, "The body arrived too slowly."},
		"endless":        {time.Hour, slices.Repeat([]int{30 << 10}, 60), pause, bodyTimeout + lingerTimeout, "The body arrived too slowly."},
		"refused":        {0, []int{1, 1}, time.Hour, lingerTimeout, "ingest_key_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				text, took := trickle(t, test.valid, test.pieces, test.pause)
				require.Contains(t, text, test.want)
				require.Equal(t, test.took, took)
			})
		})
	}
}

// A client that never reads the responses loses its connection, also without a credential.
func TestUnreadResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near := pipe(t, New(Config{Keys: &keyStore{}, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()}))
		_, err := io.WriteString(near, "GET /sources/x/ping HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		time.Sleep(2 * httpedge.StallTimeout) // The clock is the bubble's.
		_, err = near.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

// A client that reads nothing before it has sent its whole body receives the error all the same.
func TestRefusalWhileClientIsSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near := pipe(t, New(Config{Keys: &keyStore{}, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()}))
		_, err := fmt.Fprintf(near, "POST /uploads HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", MaxBody)
		require.NoError(t, err)
		_, err = io.WriteString(near, strings.Repeat("x", MaxBody))
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(near), nil)
		require.NoError(t, err)
		require.Equal(t, 401, response.StatusCode)
		require.NoError(t, response.Body.Close())
	})
}

// A body is read and decompressed in the memory that it reserves, whatever it states about its size.
func TestReadBody(t *testing.T) {
	t.Parallel()
	large := strings.Repeat(small+"\n", 200_000) // 7.4 MiB
	var windowed bytes.Buffer
	w, err := zstd.NewWriter(&windowed, zstd.WithWindowSize(MaxBody))
	require.NoError(t, err)
	_, err = io.WriteString(w, large)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	receiver := New(Config{BytesPerSecond: 1 << 40, Metrics: prometheus.NewRegistry()})
	for name, test := range map[string]struct{ encoding, body, text string }{
		"plain":                        {"", large, large},
		"gzip":                         {"gzip", gzipped(t, large), large},
		"gzip, members":                {"gzip", gzipped(t, large) + gzipped(t, small), large + small},
		"gzip, exactly full":           {"gzip", gzipped(t, strings.Repeat(" ", MaxBody)), strings.Repeat(" ", MaxBody)},
		"zstd":                         {"zstd", zstandard(t, large), large},
		"zstd, frames":                 {"zstd", zstandard(t, small) + zstandard(t, large) + zstandard(t, small), small + large + small},
		"zstd, exactly full":           {"zstd", zstandard(t, strings.Repeat(" ", MaxBody)), strings.Repeat(" ", MaxBody)},
		"zstd, 16 MiB window, no size": {"zstd", windowed.String(), large},
	} {
		budget := newMemoryLimiter(4 * MaxBody)
		m := budget.Open(fairshare.Owner{Key: "a"})
		r := httptest.NewRequest(http.MethodPost, "/uploads", strings.NewReader(test.body))
		if test.encoding != "" {
			r.Header.Set("Content-Encoding", test.encoding)
		}
		q := &request{Receiver: receiver, w: &response{ResponseWriter: httptest.NewRecorder()}, r: r}
		text, err := q.readBody(&roomsensor.Key{ID: name}, m, MaxBody)
		require.NoError(t, err, name)
		require.True(t, bytes.Equal([]byte(test.text), text), name) // Equal would print megabytes.
		require.Equal(t, cap(text), budget.Used(), name)
		m.Release()
		require.Zero(t, budget.Used(), name)
	}
}

// costlyGzip returns a gzip body of a size in bytes that takes long to decompress. Its blocks are empty, and the decoder
// reads a table of codes for each. Its last member is empty, too, so that the body states a text of 0 bytes.
func costlyGzip(t testing.TB, size int, text string) string {
	t.Helper()
	var body bytes.Buffer
	body.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
	var bits, filled uint
	write := func(value, width uint) {
		for bits, filled = bits|value<<filled, filled+width; filled >= 8; bits, filled = bits>>8, filled-8 {
			body.WriteByte(byte(bits & 0xff))
		}
	}
	for body.Len() < size || filled > 0 {
		write(0b100, 3)     // Not the last block, with tables of its own: 257 codes of literals, one of distances,
		write(14<<10, 14)   // 18 codes of lengths.
		for i := range 18 { // Of these, only the lengths 1 and "many zeros" occur: the 17th and the 3rd one.
			write(map[int]uint{2: 1, 17: 1}[i], 3)
		}
		write(1|(138-11)<<1, 8) // 138 and 118 zeros: no literals.
		write(1|(118-11)<<1, 8)
		write(0, 2) // One code for the end of the block, and one of distances.
		write(0, 1) // The end of the block.
	}
	deflated, err := flate.NewWriter(&body, flate.DefaultCompression)
	require.NoError(t, err)
	last := gzip.NewWriter(&body)
	_, err = io.WriteString(deflated, text)
	require.NoError(t, err)
	require.NoError(t, deflated.Close())
	body.Write(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
	body.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
	require.NoError(t, last.Close())
	return body.String()
}

// A body is decompressed in one pass, whatever it states about its size.
func TestDecompressInOnePass(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(" ", MaxBody/2)
	passes := 0
	counted := &decoder{size: gzipSize, open: func(packed []byte) (io.Reader, func(), error) {
		passes++
		return openGzip(packed)
	}}
	packed := costlyGzip(t, 100_000, text)
	require.Zero(t, gzipSize([]byte(packed)))
	got, err := decompress([]byte(packed), counted, memoryOf(newMemoryLimiter(4*MaxBody), "a", 1), MaxBody)
	require.NoError(t, err)
	require.Len(t, got, len(text))
	require.Equal(t, 1, passes)
}

// A compressed body counts at least packedCost times its own bytes, also if it is refused, because it may take as long
// without any text. More of the same credential is refused before it is decompressed.
func TestCompressedBodiesCount(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 53 a 3")
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"valid":   {costlyGzip(t, 100_000, small), 202},
		"cut off": {costlyGzip(t, 100_000, small)[:100_000], 400},
	} {
		g := newTestServer(t)
		g.receiver.rates = frozenRates(DefaultRequestsPerSecond, 1<<20)
		require.Equal(t, test.status, g.post(t, test.body, "Content-Encoding", "gzip").status, name)
		left := g.receiver.rates.fill(g.keyID, 1, g.receiver.rates.now()).bytes
		require.InDelta(t, burstSeconds<<20-packedCost*len(test.body), left, 0, name)

		require.NoError(t, g.receiver.rates.charge(&roomsensor.Key{ID: g.keyID, TeamID: g.team}, int(left)+1))
		g.post(t, "no gzip", "Content-Encoding", "gzip").requireCode(t, 429, roomsensor.CodeRateLimitExceeded)
	}
}

// The bodies of one team take one CPU, and leave the other one to other teams.
func TestDecompressionTurns(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	otherTeam := uuid.New()
	_, other := g.keys.add(otherTeam, false)
	held, err := g.receiver.inflating.Try(fairshare.Owner{Team: g.team}, 1)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(g.ctx, http.MethodPost, g.url+"/uploads", strings.NewReader(gzipped(t, small)))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+g.key)
	request.Header.Set("Content-Encoding", "gzip")
	waits := make(chan int, 1)
	go func() {
		response, err := client.Do(request)
		if err != nil {
			waits <- 0
			return
		}
		_ = response.Body.Close()
		waits <- response.StatusCode
	}()
	require.Eventually(t, func() bool { return g.receiver.inflating.Waiting() == 1 }, patience, time.Millisecond)
	a := g.do(t, http.MethodPost, "/uploads", strings.NewReader(gzipped(t, small)), "Authorization", "Bearer "+other, "Content-Encoding", "gzip")
	require.Equal(t, 202, a.status)
	require.Equal(t, 202, g.post(t, small).status, "it needs no turn")
	held.Release()
	require.Equal(t, 202, <-waits)
}

// memoryOf returns the memory of a new request.
func memoryOf(b *fairshare.Limiter, credential string, team byte) *fairshare.Held {
	return b.Open(fairshare.Owner{Key: credential, Team: uuid.UUID{team}})
}

// The requests of a credential may take an eighth of the memory and those of a team a quarter. A request that is alone
// may take more.
func TestMemoryBudget(t *testing.T) {
	t.Parallel()
	const unit = 10 << 20
	b := newMemoryLimiter(8 * unit)
	refused := func(m *fairshare.Held, n int, after time.Duration, message string) {
		t.Helper()
		public := httpedge.PublicError(m.Grow(n))
		require.Equal(t, 503, public.Code.Status())
		require.Equal(t, after, public.RetryAfter)
		require.Contains(t, public.Message, message)
	}
	a := memoryOf(b, "a", 1)
	require.NoError(t, a.Grow(unit))
	refused(memoryOf(b, "a", 1), 1, shareRetryAfter, "This credential")
	require.NoError(t, memoryOf(b, "b", 1).Grow(unit))
	refused(memoryOf(b, "c", 1), 1, shareRetryAfter, "Your team")
	for i := range byte(4) {
		require.NoError(t, memoryOf(b, string('d'+rune(i)), 2+i).Grow(unit))
	}
	refused(memoryOf(b, "z", 9), unit, queueRetryAfter, "The service is busy")
	a.Release()
	require.NoError(t, memoryOf(b, "c", 1).Grow(unit))

	b = newMemoryLimiter(8 * unit)
	a = memoryOf(b, "a", 1)
	require.NoError(t, a.Grow(2*unit))
	require.NoError(t, a.Grow(2*unit))
	refused(memoryOf(b, "a", 1), 1, shareRetryAfter, "This credential")
	refused(memoryOf(b, "b", 1), 1, shareRetryAfter, "Your team")
	require.NoError(t, memoryOf(b, "b", 2).Grow(2*unit))
	refused(a, 1, queueRetryAfter, "The service is busy")
}

// Eight teams take all that they can get, with many credentials and requests. Of the reserve, each of them has at most
// the part of a team that takes little. The rest is there for other teams.
func TestMemoryBudgetReserve(t *testing.T) {
	t.Parallel()
	const attackers, credentials = 8, 16
	b := newMemoryLimiter(DefaultMemory)
	for team := range byte(attackers) {
		for i := range credentials {
			m := memoryOf(b, fmt.Sprintf("%d of %d", i, team), team)
			for room := true; room; {
				room = m.Grow(firstBytes) == nil
			}
		}
	}
	require.Error(t, memoryOf(b, "large", attackers).Grow(DefaultMemory/smallPart+1))
	for team := range byte(smallPart/reservePart - attackers) {
		m := memoryOf(b, fmt.Sprint("well-behaved ", team), attackers+team)
		require.NoError(t, m.Grow(DefaultMemory/smallPart), team)
	}
}

// A credential that has taken its share of the memory does not delay others.
func TestUploadsMemoryShare(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	_, other := g.keys.add(uuid.New(), false)
	m := g.receiver.memory.Open(fairshare.Owner{Key: g.keyID, Team: g.team})
	require.NoError(t, m.Grow(DefaultMemory/credentialPart))
	a := g.post(t, small)
	a.requireCode(t, 503, roomsensor.CodeOverloaded)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	a = g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+other)
	require.Equal(t, 202, a.status)
	m.Release()
	require.Equal(t, 202, g.post(t, small).status)
}
