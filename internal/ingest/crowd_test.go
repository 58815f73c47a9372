package ingest

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// crowd fills the places of a credential with requests whose bodies do not end; leave lets them end.
func (g *gate) crowd(t *testing.T) (leave func()) {
	t.Helper()
	var group sync.WaitGroup
	var bodies []*io.PipeWriter
	leave = sync.OnceFunc(func() {
		for _, body := range bodies {
			_, _ = io.WriteString(body, small) // One that broke off has been answered.
			_ = body.Close()
		}
		group.Wait()
	})
	t.Cleanup(leave)
	key := g.key
	for range maxPerKey {
		body, w := io.Pipe()
		bodies = append(bodies, w)
		group.Go(func() {
			request, err := http.NewRequestWithContext(g.ctx, http.MethodPost, g.url+"/uploads", body)
			if err != nil {
				return
			}
			request.Header.Set("Authorization", "Bearer "+key)
			if response, err := client.Do(request); err == nil {
				_ = response.Body.Close()
			}
		})
	}
	require.Eventually(t, func() bool {
		g.receiver.places.mu.Lock()
		defer g.receiver.places.mu.Unlock()
		return g.receiver.places.taken[g.keyID] == maxPerKey
	}, patience, time.Millisecond)
	return leave
}

// A credential whose requests hang takes no room from others, and has room again once they end.
func TestACrowdOfOneCredentialKeepsNobodyElseOut(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, other := g.shelf.add(g.team, false)
	leave := g.crowd(t)
	a := g.post(t, small)
	a.requireCode(t, 503, roomsensor.CodeOverloaded)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Contains(t, a.failed.Error.Message, "too many uploads under way")
	a = g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+other)
	require.Equal(t, 202, a.status, a.body)
	require.Len(t, g.inStream(t), 1)

	leave()
	require.Equal(t, 202, g.post(t, small).status)
	require.Len(t, g.inStream(t), maxPerKey+2)
}
