package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// reader asks the API, as a client does, with one key after the other. It is for one goroutine.
type reader struct {
	client *http.Client
	url    string
	keys   []string
	asked  int // walks, each with the next key
}

func newReader(url string, keys []string) *reader {
	return &reader{client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}, url: url + "/v1", keys: keys}
}

func (r *reader) close() { r.client.CloseIdleConnections() }

// state is what /devices/current says of a device.
type state struct {
	DeviceID uuid.UUID `json:"device_id"`
	Latest   *struct {
		BucketAt time.Time `json:"bucket_at"`
		CO2      *float64  `json:"co2_ppm"`
	} `json:"latest"`
}

// current asks for every device, or for those with a tag.
func (r *reader) current(ctx context.Context, query string) (list []state, err error) {
	for cursor := ""; ; {
		var page struct {
			Data       []state `json:"data"`
			NextCursor *string `json:"next_cursor"`
		}
		if err := r.get(ctx, "/devices/current?"+query+cursor, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Data...)
		if page.NextCursor == nil {
			r.asked++
			return list, nil
		}
		cursor = "&cursor=" + *page.NextCursor
	}
}

func (r *reader) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, nil)
	if err != nil {
		return fmt.Errorf("asking the API: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+r.keys[r.asked%len(r.keys)])
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking the API: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking the API for %s: %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("reading an answer of the API: %w", err)
	}
	return nil
}

// bucketOf is the bucket of the newest reading; the zero time for none.
func (s *state) bucketOf() time.Time {
	if s.Latest == nil {
		return time.Time{}
	}
	return s.Latest.BucketAt
}

// co2 is the newest reading's; 0 for none.
func (s *state) co2() float64 {
	if s.Latest == nil || s.Latest.CO2 == nil {
		return 0
	}
	return *s.Latest.CO2
}
