package trial

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chaos/ledger"
	"roomsensor/internal/roomsensor"
)

// exported reads all readings of all teams as clients do, through the API.
func (s *Service) exported(ctx context.Context, f *Fleet) (rows []ledger.Row, err error) {
	for _, t := range f.Teams {
		of, err := s.exportOf(ctx, f, t)
		if err != nil {
			return nil, fmt.Errorf("reading a CSV: %w", err)
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

func (s *Service) exportOf(ctx context.Context, f *Fleet, t Team) ([]ledger.Row, error) {
	window := url.Values{
		"from": {roomsensor.FormatTime(f.Now.Add(-ledger.Oldest))},
		"to":   {roomsensor.FormatTime(f.Now.Add(time.Hour))},
	}
	address := "http://" + s.API + "/v1/readings.csv?" + window.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err //nolint:wrapcheck // By exported.
	}
	request.Header.Set("Authorization", "Bearer "+t.Key)
	response, err := askPatiently(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12)) // What cannot be read explains nothing.
		return nil, fmt.Errorf("%s: %s", response.Status, said)
	}
	return readCSV(response.Body)
}

// mostTries is how often a client asks that is told to come back.
const mostTries = 10

// askPatiently comes back after the seconds in Retry-After where the service is overloaded, as it is for a moment after
// the database was killed.
func askPatiently(request *http.Request) (response *http.Response, err error) {
	for range mostTries {
		response, err = (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusServiceUnavailable {
			return response, err //nolint:wrapcheck // By exported.
		}
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil {
			return response, nil //nolint:nilerr // Its status tells.
		}
		select {
		case <-request.Context().Done():
			return response, nil
		case <-time.After(time.Duration(seconds) * time.Second):
			_ = response.Body.Close() // The next one is read.
		}
	}
	return response, err //nolint:wrapcheck // By exported.
}

// The columns of the long layout (spec 2).
const (
	columnBucket = 0
	columnDevice = 1
	columnValues = 3
)

func readCSV(body io.Reader) (rows []ledger.Row, err error) {
	lines := csv.NewReader(body)
	if _, err := lines.Read(); err != nil {
		return nil, err //nolint:wrapcheck // By exported.
	}
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err //nolint:wrapcheck // By exported.
		}
		row, err := rowOf(fields)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}

func rowOf(fields []string) (row ledger.Row, err error) {
	at, ok := roomsensor.ParseTime(fields[columnBucket])
	if !ok {
		return row, fmt.Errorf("a bucket_at is %q", fields[columnBucket])
	}
	device, err := uuid.Parse(fields[columnDevice])
	if err != nil {
		return row, err //nolint:wrapcheck // By exported.
	}
	row.Key = ledger.KeyOf(device, at)
	for i, m := range roomsensor.Metrics {
		text := fields[columnValues+i]
		if text == "" {
			continue
		}
		x, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return row, err //nolint:wrapcheck // By exported.
		}
		row.Values.Set(m, float32(x))
	}
	return row, nil
}
