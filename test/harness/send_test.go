package harness

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/ledger"
)

// trialOf returns a trial with a fake receiver.
func trialOf(t *testing.T, address string, requests ...*ledger.Request) *Trial {
	t.Helper()
	s := &Service{Env: &Env{}, Receiver: address}
	trial := NewTrial(s, &Fleet{Teams: []Team{{Credential: "rsi_a_b"}}}, requests)
	trial.receiver = NewReceiver(address, -1)
	return trial
}

// TestTrialOutcomes derives the outcome of a request from the answer of the receiver.
func TestTrialOutcomes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		status   int
		invalid  string
		want     ledger.Outcome
		final    bool
		findings int
	}{
		{"stored", http.StatusAccepted, "", ledger.OK, true, 0},
		{"busy", http.StatusServiceUnavailable, "", ledger.Unknown, false, 0},
		{"busy, request invalid", http.StatusServiceUnavailable, "{}", ledger.Unknown, false, 0},
		{"invalid request refused", http.StatusBadRequest, "{}", ledger.Failed, true, 0},
		{"valid request refused", http.StatusBadRequest, "", ledger.Unknown, true, 1},
		{"invalid request stored", http.StatusAccepted, "{}", ledger.Unknown, true, 1},
		{"internal error", http.StatusInternalServerError, "", ledger.Unknown, true, 1},
		{"unauthorized", http.StatusUnauthorized, "", ledger.Unknown, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/uploads" && r.Header.Get("Authorization") == "Bearer rsi_a_b" {
					w.WriteHeader(test.status)
				}
			}))
			defer server.Close()
			s := trialOf(t, strings.TrimPrefix(server.URL, "http://"))
			outcome, final := s.post(t.Context(), &ledger.Request{InvalidLine: test.invalid})
			require.Equal(t, test.want, outcome)
			require.Equal(t, test.final, final)
			require.Len(t, s.Findings(), test.findings)
		})
	}
}

// TestTrialNoAnswer distinguishes a request that was never sent from one that was received and not answered.
func TestTrialNoAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	s := trialOf(t, strings.TrimPrefix(server.URL, "http://"))
	outcome, final := s.post(t.Context(), &ledger.Request{})
	require.Equal(t, ledger.Unknown, outcome)
	require.False(t, final)
	server.Close()
	outcome, final = s.post(t.Context(), &ledger.Request{})
	require.Equal(t, ledger.Failed, outcome)
	require.False(t, final)
}

// TestTrialRetries counts the attempts at a receiver that answers 503 once.
func TestTrialRetries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		abandoned bool
		want      ledger.Tally
	}{
		{false, ledger.Tally{Uploads: 1, Attempts: 2, OK: 1}},
		{true, ledger.Tally{Uploads: 1, Attempts: 1, Unknown: 1}},
	} {
		answers := make(chan int, 2)
		answers <- http.StatusServiceUnavailable
		answers <- http.StatusAccepted
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(<-answers)
		}))
		request := &ledger.Request{Abandoned: test.abandoned, Uploads: []*ledger.Upload{{ID: 1, Unit: &ledger.Unit{}}}}
		s := trialOf(t, strings.TrimPrefix(server.URL, "http://"), request)
		over := make(chan struct{})
		close(over)
		s.NoMoreFaults = over
		s.Send(t.Context(), []*ledger.Request{request})
		require.Equal(t, test.want, s.Ledger.Tally())
		server.Close()
	}
}

// TestTrialStop has a request that is due and one that would be due in an hour.
func TestTrialStop(t *testing.T) {
	t.Parallel()
	taken := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		taken <- struct{}{}
	}))
	t.Cleanup(server.Close)
	requests := []*ledger.Request{
		{Uploads: []*ledger.Upload{{ID: 1, Unit: &ledger.Unit{}}}},
		{Uploads: []*ledger.Upload{{ID: 2, Unit: &ledger.Unit{}}}, Due: time.Hour},
	}
	s := trialOf(t, strings.TrimPrefix(server.URL, "http://"), requests...)
	stop, sent := make(chan struct{}), make(chan struct{})
	s.Stop = stop
	go func() {
		defer close(sent)
		s.Send(t.Context(), requests)
	}()
	<-taken
	close(stop)
	<-sent
	require.Equal(t, ledger.Tally{Uploads: 2, Attempts: 1, OK: 1, Unsent: 1}, s.Ledger.Tally())
}

func TestReceiverPostUntilStored(t *testing.T) {
	t.Parallel()
	answers := make(chan int, 3)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := <-answers
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	r := NewReceiver(strings.TrimPrefix(server.URL, "http://"), 1)
	t.Cleanup(r.Close)
	answers <- http.StatusServiceUnavailable
	answers <- http.StatusAccepted
	refused, err := r.PostUntilStored(t.Context(), "rsi_a_b", nil)
	require.NoError(t, err)
	require.Equal(t, 1, refused)
	answers <- http.StatusForbidden
	_, err = r.PostUntilStored(t.Context(), "rsi_a_b", nil)
	require.ErrorContains(t, err, "status 403")
}
