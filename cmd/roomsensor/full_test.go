package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// bulky is an upload of one reading that takes nearly a megabyte of the stream.
func bulky(n int) string {
	at := roomsensor.FormatTime(firstBucket.Add(time.Duration(n) * roomsensor.BucketLength))
	return fmt.Sprintf(`{"hardware_id":"dev:1","padding":%q,"readings":[{"measured_at":%q,"co2_ppm":%d}]}`,
		strings.Repeat("x", 900_000), at, n)
}

// fill posts uploads from the n-th on, until one is refused or most are confirmed, and returns the next.
func (p *plant) fill(n, most int) int {
	p.t.Helper()
	for ; n < most; n++ {
		response := p.send(bulky(n))
		switch response.StatusCode {
		case http.StatusAccepted:
		case http.StatusServiceUnavailable:
			seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
			require.NoError(p.t, err)
			require.Positive(p.t, seconds)
			return n
		default:
			require.FailNow(p.t, response.Status)
		}
	}
	return n
}

// send posts an upload that must be answered.
func (p *plant) send(upload string) *http.Response {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, "http://"+p.receiver+"/uploads",
		strings.NewReader(upload))
	require.NoError(p.t, err)
	request.Header.Set("Authorization", "Bearer "+p.key)
	response, err := p.client.Do(request)
	require.NoError(p.t, err)
	require.NoError(p.t, response.Body.Close())
	return response
}

// A stream that is full of uploads that no worker has seen refuses more and drops nothing. Once a worker is there it
// recovers by itself, and what was refused is taken when it is sent again.
func TestAFullStreamRefusesAndRecoversByItself(t *testing.T) {
	t.Parallel()
	p := newPlant(t, "dev:1")
	p.environment["STREAM_MAX_BYTES"] = "16MiB"
	p.start("ingest", "--no-worker")
	next := p.fill(0, 100)
	require.Less(t, next, 20, "the stream holds 16 MiB")
	require.Equal(t, next, p.fill(next, 100), "it stays full")
	require.Equal(t, uint64(next), stream(t, p.nats.URL).CachedInfo().State.Msgs, "and keeps what it has")

	p.start("ingest", "--no-receiver")
	most := next + 6 // More than a purge makes room for.
	require.Eventually(t, func() bool {
		next = p.fill(next, most)
		return next == most
	}, 3*bearable, 100*time.Millisecond)
	p.awaitSettled()
	require.Equal(t, most, p.count("SELECT count(*) FROM readings WHERE co2_ppm = extract(epoch FROM bucket_at - $1) / 300", firstBucket))
	require.Less(t, stream(t, p.nats.URL).CachedInfo().State.Msgs, uint64(most), "what is stored made room")
}
