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
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // By exported.
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12)) // What cannot be read explains nothing.
		return nil, fmt.Errorf("%s: %s", response.Status, said)
	}
	return readCSV(response.Body)
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
