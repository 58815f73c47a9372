package proctest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// Metrics reads the metrics of the roomsensor process with the given ops address, by name.
func Metrics(ctx context.Context, opsAddr string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+opsAddr+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	return ParseMetrics(response.Body)
}

// ParseMetrics parses metrics in the text format, by name.
func ParseMetrics(text io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("parsing metrics: %w", err)
	}
	return families, nil
}

// Value returns the value of a counter or gauge of this process.
func Value(t testing.TB, metric interface{ Write(m *dto.Metric) error }) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, metric.Write(&m))
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}
