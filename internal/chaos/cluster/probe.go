package cluster

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// probeEvery is how exactly the time without an answer is known.
	probeEvery = 200 * time.Millisecond
	// probeKeys share the questions: each key may ask 600 times in ten minutes.
	probeKeys = 8
	// probeTimeout is what a client waits for an answer.
	probeTimeout = 10 * time.Second
)

// prober asks the API all the time, as clients do.
type prober struct {
	client http.Client
	urls   []string
	keys   []string
	gauge  gauge
}

// newProber asks for the snapshot of a team, and for readings of one of its devices.
func (w *world) newProber(ctx context.Context) (*prober, error) {
	base := "http://" + w.trial.API + "/v1/devices/"
	p := &prober{
		client: http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
		urls:   []string{base + "current", base + w.fleet.Units[0].Device.String() + "/readings?last=24h"},
	}
	for range probeKeys {
		key, err := w.trial.MakeKey(ctx, w.fleet.Teams[0].ID)
		if err != nil {
			return nil, err
		}
		p.keys = append(p.keys, key)
	}
	return p, nil
}

// run asks until ctx ends, whether or not the earlier questions have an answer.
func (p *prober) run(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	for i := 0; ; i++ {
		group.Go(func() { p.ask(ctx, p.urls[i%len(p.urls)], p.keys[i%len(p.keys)]) })
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *prober) ask(ctx context.Context, url, key string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+key)
	asked := time.Now()
	response, err := p.client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	switch {
	case ctx.Err() != nil: // Nobody waits for it any more.
	case err != nil:
		p.gauge.failure(asked, "no answer")
	case response.StatusCode != http.StatusOK:
		p.gauge.failure(asked, response.Status)
	default:
		p.gauge.success(time.Now())
	}
}
