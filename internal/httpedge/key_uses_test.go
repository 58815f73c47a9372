package httpedge

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// useLog records the uses that are stored, and fails while it has an error.
type useLog struct {
	mu     sync.Mutex
	stored [][]roomsensor.KeyUse
	err    error
}

func (l *useLog) store(_ context.Context, uses []roomsensor.KeyUse) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.stored = append(l.stored, uses)
	}
	return l.err
}

// fail makes the next attempts fail with an error; nil ends that.
func (l *useLog) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *useLog) take() [][]roomsensor.KeyUse {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored := l.stored
	l.stored = nil
	return stored
}

// runKeyUses runs a KeyUses in a synctest bubble, whose clock begins at midnight. It stores nothing at first.
func runKeyUses(t *testing.T, test func(u *KeyUses, l *useLog, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &useLog{}
		u := NewKeyUses(l.store, time.Now, zerolog.Nop())
		ctx, cancel := context.WithCancel(t.Context())
		go u.Run(ctx)
		synctest.Wait()
		test(u, l, func() {
			cancel()
			synctest.Wait()
		})
		cancel()
	})
}

// sleep passes time in a synctest bubble.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func requestBy(agent string) *http.Request {
	r := &http.Request{Header: http.Header{}}
	r.Header.Set("User-Agent", agent)
	return r
}

func TestKeyUses(t *testing.T) {
	t.Parallel()

	t.Run("a first use is stored within 10 seconds, with its last time and client", func(t *testing.T) {
		t.Parallel()
		runKeyUses(t, func(u *KeyUses, l *useLog, _ func()) {
			u.Record("a", requestBy("curl/8"))
			u.Record("b", requestBy(""))
			<-time.After(time.Second)
			u.Record("a", requestBy("python-requests/2"))
			at := time.Now()
			sleep(keyUseInterval)
			require.Equal(t, [][]roomsensor.KeyUse{{
				{KeyID: "a", At: at, Client: "python-requests/2"}, {KeyID: "b", At: at.Add(-time.Second)},
			}}, l.take())
		})
	})

	t.Run("a busy key is stored once a minute", func(t *testing.T) {
		t.Parallel()
		runKeyUses(t, func(u *KeyUses, l *useLog, _ func()) {
			for range 10 * 60 {
				u.Record("a", requestBy("curl/8"))
				sleep(time.Second)
			}
			require.Len(t, l.take(), 10)
		})
	})

	t.Run("the last use is kept until it can be stored", func(t *testing.T) {
		t.Parallel()
		runKeyUses(t, func(u *KeyUses, l *useLog, _ func()) {
			l.fail(errors.New("unavailable"))
			u.Record("a", requestBy("curl/8"))
			at := time.Now()
			sleep(time.Hour)
			l.fail(nil)
			sleep(keyUseInterval)
			require.Equal(t, [][]roomsensor.KeyUse{{{KeyID: "a", At: at, Client: "curl/8"}}}, l.take())
		})
	})

	t.Run("a process that stops stores what it has", func(t *testing.T) {
		t.Parallel()
		runKeyUses(t, func(u *KeyUses, l *useLog, stop func()) {
			u.Record("a", requestBy("curl/8"))
			stop()
			require.Len(t, l.take(), 1)
		})
	})

	t.Run("memory is bounded, and free again after a minute", func(t *testing.T) {
		t.Parallel()
		runKeyUses(t, func(u *KeyUses, l *useLog, _ func()) {
			for i := range maxKeyUses + 1 {
				u.Record(strconv.Itoa(i), requestBy(strings.Repeat("x y ", 1000)))
			}
			sleep(keyUseInterval)
			batches := l.take()
			require.Len(t, batches, maxKeyUses/keyUseBatch)
			require.Len(t, batches[0], keyUseBatch)
			require.LessOrEqual(t, len(batches[0][0].Client), maxClient+len("..."))
			u.mu.Lock()
			require.LessOrEqual(t, len(u.byID["1"].agent), 2*maxClient)
			u.mu.Unlock()
			sleep(keyUsePrecision + keyUseInterval)
			u.mu.Lock()
			defer u.mu.Unlock()
			require.Empty(t, u.byID)
		})
	})

	t.Run("a key in the User-Agent is not stored", func(t *testing.T) {
		t.Parallel()
		runKeyUses(t, func(u *KeyUses, l *useLog, _ func()) {
			_, text, _ := roomsensor.GenerateKey(roomsensor.APIKey)
			u.Record("a", requestBy("script "+text))
			sleep(keyUseInterval)
			require.Equal(t, "script rsk_...", l.take()[0][0].Client)
		})
	})
}
