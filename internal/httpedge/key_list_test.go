package httpedge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// keyTable is a KeyTable that tests change. Each change is a transaction of its own.
type keyTable struct {
	mu       sync.Mutex
	rows     []keyRow // in the order of their ids
	changes  int64
	server   time.Time
	err      error
	duration time.Duration // of a query
	asked    []string      // names of the queries
}

type keyRow struct {
	roomsensor.Key
	changedIn int64
}

func (k *keyTable) change(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	change()
}

// query returns up to most keys, at the time at which it begins.
func (k *keyTable) query(ctx context.Context, name string, most int32, match func(r *keyRow) bool) (found []roomsensor.Key, err error) {
	var wait time.Duration
	k.change(func() {
		k.asked = append(k.asked, name)
		wait, err = k.duration, k.err
		for i := range k.rows {
			if match(&k.rows[i]) && len(found) < int(most) {
				found = append(found, k.rows[i].Key)
			}
		}
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
		return found, err
	}
}

func (k *keyTable) IngestKeysByID(ctx context.Context, ids []string) ([]roomsensor.Key, error) {
	return k.query(ctx, "id", 1000, func(r *keyRow) bool { return slices.Contains(ids, r.ID) })
}

func (k *keyTable) IngestKeysAfter(ctx context.Context, id string, most int32) ([]roomsensor.Key, error) {
	return k.query(ctx, "all", most, func(r *keyRow) bool { return r.ID > id })
}

func (k *keyTable) IngestKeyPosition(ctx context.Context) (p roomsensor.KeyPosition, err error) {
	_, err = k.query(ctx, "position", 0, func(*keyRow) bool { return false })
	k.change(func() { p = roomsensor.KeyPosition{OldestRunning: k.changes, ServerStarted: k.server} })
	return p, err
}

func (k *keyTable) IngestKeysChanged(ctx context.Context, since roomsensor.KeyPosition, most int32) ([]roomsensor.Key, error) {
	return k.query(ctx, "changed", most, func(r *keyRow) bool { return r.changedIn >= since.OldestRunning })
}

// count returns how often a query was asked.
func (k *keyTable) count(name string) (n int) {
	k.change(func() {
		for _, asked := range k.asked {
			if asked == name {
				n++
			}
		}
	})
	return n
}

// add adds a key and returns its text.
func (k *keyTable) add() (text string) {
	id, text, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	k.change(func() {
		k.rows = append(k.rows, keyRow{roomsensor.Key{ID: id, SecretSHA256: sum}, k.changes})
		slices.SortFunc(k.rows, func(a, b keyRow) int { return strings.Compare(a.ID, b.ID) })
	})
	return text
}

func (k *keyTable) revoke(text string) {
	id, _, _ := roomsensor.ParseKey(roomsensor.IngestKey, text)
	k.change(func() {
		for i := range k.rows {
			if r := &k.rows[i]; r.ID == id {
				r.RevokedAt, r.Source, r.changedIn = new(time.Now()), &roomsensor.KeySource{}, k.changes
			}
		}
	})
}

// runningList is a KeyList that runs until the test ends.
type runningList struct {
	*KeyList
	auth *Authenticator
}

// start runs a list; its first load is complete or waits.
func (k *keyTable) start(t *testing.T) *runningList {
	t.Helper()
	list := NewKeyList(k, zerolog.Nop())
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		time.Sleep(keyLookupTimeout) // Queries in progress end.
	})
	go list.Run(ctx)
	synctest.Wait()
	return &runningList{list, NewAuthenticator(list, IngestKeyCodes(), time.Now)}
}

func (l *runningList) isLoaded() bool {
	select {
	case <-l.Loaded():
		return true
	default:
		return false
	}
}

// code authenticates a text and returns the code of the error, or "" for a valid key.
func (l *runningList) code(ctx context.Context, text string) roomsensor.Code {
	if _, err := l.auth.Authenticate(ctx, text); err != nil {
		return PublicError(err).Code
	}
	return ""
}

// codes authenticates a text 100 times at once.
func (l *runningList) codes(ctx context.Context, text string) map[roomsensor.Code]int {
	results := make(chan roomsensor.Code)
	for range 100 {
		go func() { results <- l.code(ctx, text) }()
	}
	codes := map[roomsensor.Code]int{}
	for range 100 {
		codes[<-results]++
	}
	return codes
}

func unknownIngestKey() string {
	_, text, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	return text
}

// testKeyList runs a test with a fake clock and an empty table.
func testKeyList(t *testing.T, test func(t *testing.T, k *keyTable)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &keyTable{}) })
}

// A revoke takes effect within 5 seconds (decision 24).
func TestKeyListRevoke(t *testing.T) {
	t.Parallel()
	testKeyList(t, func(t *testing.T, k *keyTable) {
		t.Helper()
		text := k.add()
		l := k.start(t)
		require.Empty(t, l.code(t.Context(), text))
		k.revoke(text)
		time.Sleep(5*time.Second - keyListTimeout)
		require.Equal(t, roomsensor.CodeIngestKeyRevoked, l.code(t.Context(), text))
		require.Equal(t, 1, k.count("all"))
	})
}

// A new key works at once, and costs one query for its id.
func TestKeyListNewKey(t *testing.T) {
	t.Parallel()
	testKeyList(t, func(t *testing.T, k *keyTable) {
		t.Helper()
		l := k.start(t)
		text := k.add()
		require.Empty(t, l.code(t.Context(), text))
		require.Empty(t, l.code(t.Context(), text))
		require.Equal(t, 1, k.count("id"))
		require.Equal(t, 1, k.count("all"))
	})
}

// An unavailable database is asked once per interval, and the list is not loaded until all keys were read.
func TestKeyListUnavailable(t *testing.T) {
	t.Parallel()
	testKeyList(t, func(t *testing.T, k *keyTable) {
		t.Helper()
		k.err = errors.New("unavailable")
		text := k.add()
		l := k.start(t)
		for range 1000 {
			require.Equal(t, roomsensor.CodeOverloaded, l.code(t.Context(), text))
		}
		require.Len(t, k.asked, 1)
		require.False(t, l.isLoaded())
		k.change(func() { k.err = nil })
		time.Sleep(keyAge)
		synctest.Wait()
		require.True(t, l.isLoaded())
		require.Empty(t, l.code(t.Context(), text))
	})
}

// Known keys work while the database is unavailable.
func TestKeyListKnownKeys(t *testing.T) {
	t.Parallel()
	testKeyList(t, func(t *testing.T, k *keyTable) {
		t.Helper()
		text := k.add()
		l := k.start(t)
		k.change(func() { k.err = errors.New("unavailable") })
		time.Sleep(time.Hour)
		require.True(t, l.isLoaded())
		require.Empty(t, l.code(t.Context(), text))
		id, _, _ := roomsensor.ParseKey(roomsensor.IngestKey, text)
		wrong := roomsensor.FormatKey(roomsensor.IngestKey, id, "wrong")
		require.Equal(t, roomsensor.CodeIngestKeyInvalid, l.code(t.Context(), wrong))
		require.Equal(t, roomsensor.CodeOverloaded, l.code(t.Context(), unknownIngestKey()))
	})
}

// Requests with an unknown key share a query, and its failure.
func TestKeyListSharedLookup(t *testing.T) {
	t.Parallel()
	testKeyList(t, func(t *testing.T, k *keyTable) {
		t.Helper()
		l := k.start(t)
		k.change(func() { k.duration = 100 * time.Millisecond })
		want := map[roomsensor.Code]int{roomsensor.CodeIngestKeyInvalid: 100}
		require.Equal(t, want, l.codes(t.Context(), unknownIngestKey()))
		require.Equal(t, 1, k.count("id"))

		k.change(func() { k.duration = time.Hour })
		want = map[roomsensor.Code]int{roomsensor.CodeOverloaded: 100}
		require.Equal(t, want, l.codes(t.Context(), unknownIngestKey()))
	})
}

// A deleted key works until all keys are read again: after 5 minutes, or at once if the server was replaced.
func TestKeyListDeletedKey(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{false, true} {
		testKeyList(t, func(t *testing.T, k *keyTable) {
			t.Helper()
			text := k.add()
			l := k.start(t)
			k.change(func() {
				k.rows = nil
				if moved {
					k.server = time.Now()
				}
			})
			wait := keyListAge
			if moved {
				wait = 0
			}
			time.Sleep(wait + keyAge + time.Millisecond)
			require.Equal(t, roomsensor.CodeIngestKeyInvalid, l.code(t.Context(), text))
		})
	}
}

// A list that is longer than a page is read in pages, however long that takes. A key that is revoked meanwhile, or whose
// source is disabled, stays so, though its page was read before. More changes than a page are read like a new list.
func TestKeyListPages(t *testing.T) {
	t.Parallel()
	testKeyList(t, func(t *testing.T, k *keyTable) {
		t.Helper()
		k.change(func() {
			for i := range 2*keyPage + 1 {
				k.rows = append(k.rows, keyRow{roomsensor.Key{ID: string(rune('0' + i))}, 0})
			}
			slices.SortFunc(k.rows, func(a, b keyRow) int { return strings.Compare(a.ID, b.ID) })
		})
		text := k.add()
		k.change(func() { k.duration = 900 * time.Millisecond })
		l := k.start(t)
		for !l.isLoaded() {
			time.Sleep(time.Second)
		}
		require.Equal(t, 3, k.count("all"))

		for k.count("all") < 5 { // Until all keys are read again.
			time.Sleep(time.Second)
		}
		k.revoke(text)
		id, _, _ := roomsensor.ParseKey(roomsensor.IngestKey, text)
		time.Sleep(5 * time.Second)
		for range 100 {
			key, _ := l.Cached(id)
			require.NotNil(t, key.RevokedAt)
			require.NotNil(t, key.Source)
			time.Sleep(100 * time.Millisecond)
		}

		k.change(func() {
			for i := range k.rows {
				k.rows[i].changedIn = k.changes
			}
		})
		before := k.count("all")
		time.Sleep(time.Minute)
		require.Equal(t, before+3, k.count("all"))
	})
}
