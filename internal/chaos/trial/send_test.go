package trial

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/chaos/ledger"
)

// senderTo sends to a receiver that a test plays.
func senderTo(t *testing.T, address string) (s *Sender, findings *int) {
	t.Helper()
	findings = new(int)
	return &Sender{
		Service:   &Service{Receiver: address, Unexpected: func(string, ...any) { *findings++ }},
		Fleet:     &Fleet{Teams: []Team{{Credential: "rsi_a_b"}}},
		Ledger:    ledger.New(nil),
		Confirmed: func(*ledger.Request, time.Time) {},
		client:    &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}, findings
}

// TestOutcomes is what an answer of the receiver says of a request.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		status   int
		spoilt   string
		want     ledger.Outcome
		final    bool
		findings int
	}{
		{"stored", http.StatusAccepted, "", ledger.OK, true, 0},
		{"busy", http.StatusServiceUnavailable, "", ledger.Unknown, false, 0},
		{"busy with what it would refuse", http.StatusServiceUnavailable, "{}", ledger.Unknown, false, 0},
		{"refused as it must", http.StatusBadRequest, "{}", ledger.Failed, true, 0},
		{"refused although it is good", http.StatusBadRequest, "", ledger.Unknown, true, 1},
		{"stored although it is spoilt", http.StatusAccepted, "{}", ledger.Unknown, true, 1},
		{"broken", http.StatusInternalServerError, "", ledger.Unknown, true, 1},
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
			s, findings := senderTo(t, strings.TrimPrefix(server.URL, "http://"))
			outcome, final := s.post(t.Context(), &ledger.Request{Spoilt: test.spoilt})
			require.Equal(t, test.want, outcome)
			require.Equal(t, test.final, final)
			require.Equal(t, test.findings, *findings)
		})
	}
}

// TestNoAnswer tells a request that never left from one that was taken and not answered.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	s, _ := senderTo(t, strings.TrimPrefix(server.URL, "http://"))
	outcome, final := s.post(t.Context(), &ledger.Request{})
	require.Equal(t, ledger.Unknown, outcome)
	require.False(t, final)
	server.Close()
	outcome, final = s.post(t.Context(), &ledger.Request{})
	require.Equal(t, ledger.Failed, outcome)
	require.False(t, final)
}

// TestRequestsAreSentAgainUnlessAbandoned counts the attempts at a receiver that is busy once.
func TestRequestsAreSentAgainUnlessAbandoned(t *testing.T) {
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
		s, _ := senderTo(t, strings.TrimPrefix(server.URL, "http://"))
		request := &ledger.Request{Abandoned: test.abandoned, Uploads: []*ledger.Upload{{ID: 1, Unit: &ledger.Unit{}}}}
		s.Ledger = ledger.New([]*ledger.Request{request})
		calm := make(chan struct{})
		close(calm)
		s.Calm = calm
		s.SendAll(t.Context(), []*ledger.Request{request})
		require.Equal(t, test.want, s.Ledger.Tally())
		server.Close()
	}
}

// TestEnoughIsEnough has a request that is due and one that would be due in an hour.
func TestEnoughIsEnough(t *testing.T) {
	t.Parallel()
	taken := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		taken <- struct{}{}
	}))
	t.Cleanup(server.Close)
	s, _ := senderTo(t, strings.TrimPrefix(server.URL, "http://"))
	requests := []*ledger.Request{
		{Uploads: []*ledger.Upload{{ID: 1, Unit: &ledger.Unit{}}}},
		{Uploads: []*ledger.Upload{{ID: 2, Unit: &ledger.Unit{}}}, Due: time.Hour},
	}
	s.Ledger = ledger.New(requests)
	calm, enough, sent := make(chan struct{}), make(chan struct{}), make(chan struct{})
	close(calm)
	s.Calm, s.Enough = calm, enough
	go func() {
		defer close(sent)
		s.SendAll(t.Context(), requests)
	}()
	<-taken
	close(enough)
	<-sent
	require.Equal(t, ledger.Tally{Uploads: 2, Attempts: 1, OK: 1, Unsent: 1}, s.Ledger.Tally())
}
